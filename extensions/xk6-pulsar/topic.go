package pulsar

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// topicName has the parts of a topic's name.
type topicName struct{ domain, tenant, namespace, local string }

const (
	persistent    = "persistent"
	nonPersistent = "non-persistent"
)

// topic parses "orders", "tenant/namespace/orders" or "persistent://tenant/namespace/orders".
func (c *conn) topic(name string) (topicName, error) {
	t := topicName{domain: persistent}
	rest := name
	if domain, behind, ok := strings.Cut(name, "://"); ok {
		t.domain, rest = domain, behind
	} else if !strings.Contains(name, "/") {
		rest = c.namespace + "/" + name
	}
	parts := strings.Split(rest, "/")
	isDomain := t.domain == persistent || t.domain == nonPersistent
	if !isDomain || len(parts) != 3 || slices.Contains(parts, "") {
		return t, fmt.Errorf("topic %q: %w", name, errTopicName)
	}
	t.tenant, t.namespace, t.local = parts[0], parts[1], parts[2]
	return t, nil
}

// String is the full name.
func (t topicName) String() string {
	return t.domain + "://" + t.tenant + "/" + t.namespace + "/" + t.local
}

// path is the topic's path in the admin API.
func (t topicName) path() string {
	parts := []string{
		"/admin/v2",
		t.domain,
		url.PathEscape(t.tenant),
		url.PathEscape(t.namespace),
		url.PathEscape(t.local),
	}
	return strings.Join(parts, "/")
}
