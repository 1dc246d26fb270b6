package driver_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestAs(t *testing.T) {
	object := bytes.NewBufferString("lent")
	var same *bytes.Buffer
	if !driver.As(&same, object) || same != object {
		t.Errorf("%v", same)
	}
	var wider io.Reader
	if !driver.As[io.Reader](&wider, object) || wider != object {
		t.Errorf("%v", wider)
	}
	var other *bytes.Reader
	if driver.As(&other, object) || other != nil {
		t.Errorf("%v", other)
	}
	if driver.As(nil, object) || driver.As(same, object) {
		t.Error("what is not asked for was lent")
	}
}
