package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// opened connects with tlsCA and returns what the driver reads.
func opened(t *testing.T, a *Address) (string, error) {
	t.Helper()
	v, err := a.Resolve(OnConnect, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Target{URL: a.url, Options: v}.File("tlsCA")
}

func TestFile_ReadElsewhere_ReadAgainWhereItIs(t *testing.T) {
	a, err := ParseURL("sample://h?tlsCA=ca.pem", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened(t, a); err == nil || !strings.Contains(err.Error(), `option "tlsCA": open ca.pem: `) {
		t.Errorf("no such file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := a.ReadFiles(func(name string) (string, []byte, error) { return path, []byte("first " + name), nil }); err != nil {
		t.Fatal(err)
	}
	if text, err := opened(t, a); err != nil || text != "first ca.pem\n" {
		t.Errorf("%q, %v", text, err)
	}
	if a, err = ParseURL("sample://h?tlsCA=ca.pem", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.ReadFiles(func(string) (string, []byte, error) { return path, nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := opened(t, a); err != nil || text != "renewed" {
		t.Errorf("%q, %v", text, err)
	}
	if a, err = ParseURL("sample://h?tlsCA=ca.pem", nil); err != nil {
		t.Fatal(err)
	}
	err = a.ReadFiles(func(string) (string, []byte, error) { return "", nil, fs.ErrNotExist })
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `option "tlsCA"`) {
		t.Error(err)
	}
}

func TestFile_TextInPlaceOfPath_NotShown(t *testing.T) {
	const text = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
	a, err := ParseURL("sample://h", map[string]any{"tlsCA": text, "tlsKey": "key.pem"})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	err = a.ReadFiles(func(name string) (string, []byte, error) { names = append(names, name); return key, nil, nil })
	if err != nil || len(names) != 1 {
		t.Errorf("read %q, %v; want key.pem only", names, err)
	}
	if got, err := opened(t, a); err != nil || got != text {
		t.Errorf("%q, %v", got, err)
	}
	v, _ := a.Resolve(OnConnect, nil)
	if shown := a.Driver.Redact(v); shown["tlsCA"] != "(set)" || shown["tlsKey"] != key {
		t.Errorf("shown: %v", shown)
	}
	if _, err := ParseURL("sample://h", map[string]any{"tlsCA": 7}); err == nil || !strings.Contains(err.Error(), `option "tlsCA": 7 is not the path of a file, or its text`) {
		t.Error(err)
	}
}
