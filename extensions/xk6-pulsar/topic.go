package pulsar

import (
	"fmt"
	"net/url"
	"strings"
)

// topicName is a topic with all that belongs to its name.
type topicName struct{ domain, tenant, namespace, local string }

const (
	persistent    = "persistent"
	nonPersistent = "non-persistent"
)

// topic understands a name: "orders", "tenant/namespace/orders" or "persistent://tenant/namespace/orders".
func (c *conn) topic(name string) (topicName, error) {
	t := topicName{domain: persistent}
	rest := name
	if domain, behind, ok := strings.Cut(name, "://"); ok {
		t.domain, rest = domain, behind
	} else if !strings.Contains(name, "/") {
		rest = c.namespace + "/" + name
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" || t.domain != persistent && t.domain != nonPersistent {
		return t, fmt.Errorf("topic %q: %w", name, errTopicName)
	}
	t.tenant, t.namespace, t.local = parts[0], parts[1], parts[2]
	return t, nil
}

// String is the name in full.
func (t topicName) String() string {
	return t.domain + "://" + t.tenant + "/" + t.namespace + "/" + t.local
}

// path is where the admin API has it.
func (t topicName) path() string {
	return "/admin/v2/" + t.domain + "/" + url.PathEscape(t.tenant) + "/" + url.PathEscape(t.namespace) + "/" + url.PathEscape(t.local)
}
