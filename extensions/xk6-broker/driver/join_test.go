package driver_test

import (
	"errors"
	"io"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

func TestJoin(t *testing.T) {
	gone := &driver.OptionError{Name: "lease", Err: errors.New("over")}
	err := driver.Join(nil, gone, io.EOF, gone, nil, errors.New("EOF"))
	if want := "option \"lease\": over (2 times)\nEOF (2 times)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	var option *driver.OptionError
	if !errors.Is(err, io.EOF) || !errors.As(err, &option) {
		t.Errorf("the errors are not in %v", err)
	}
	if err := driver.Join(nil, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}
