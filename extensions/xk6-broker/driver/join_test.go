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

func TestJoinSettled_SomeFailed_ReturnsHowManyDidNot(t *testing.T) {
	failed := errors.New("the lease is over")
	var part *driver.PartError
	if err := driver.JoinSettled(nil, failed, nil); !errors.As(err, &part) || part.Settled != 2 || !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if err := driver.JoinSettled(failed, failed); errors.As(err, &part) || !errors.Is(err, failed) {
		t.Errorf("%v: none was settled", err)
	}
	if err := driver.JoinSettled(nil, nil); err != nil {
		t.Error(err)
	}
}
