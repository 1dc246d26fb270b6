package driver

import (
	"slices"
	"testing"
)

func target(t *testing.T, url string, given map[string]any) Target {
	t.Helper()
	a, err := ParseURL(url, given)
	if err != nil {
		t.Fatal(err)
	}
	v, err := a.Resolve(OnConnect, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Target{URL: a.url, Hosts: a.hosts, Options: v}
}

func TestWhoLogsIn(t *testing.T) {
	for url, want := range map[string][2]string{
		"sample://h":                        {},
		"sample://ann:secret@h":             {"ann", "secret"},
		"sample://ann@h?password=secret":    {"ann", "secret"},
		"sample://h?user=ann":               {"ann", ""},
		"sample://bob:b@h?user=ann":         {"ann", "b"},
		"sample://bob:b@h?password=another": {"bob", "another"},
	} {
		user, password := target(t, url, nil).Login()
		if got := [2]string{user, password}; got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
}

func TestHostsHavePorts(t *testing.T) {
	got := target(t, "sample://a,b:1,[::1],[::1]:2,c", nil).Addresses("9")
	if want := []string{"a:9", "b:1", "[::1]:9", "[::1]:2", "c:9"}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := target(t, "sample://", nil).Addresses("9"); !slices.Equal(got, []string{"127.0.0.1:9"}) {
		t.Error(got)
	}
}
