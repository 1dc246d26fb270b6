package driver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// NetworkKind returns the kind of an error of the network or of TLS, else [Unknown].
// [Driver.KindOf] uses it if Classify returns Unknown.
func NetworkKind(err error) Kind {
	var op *net.OpError
	var network net.Error
	switch {
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"), // how package tls reports an alert
		errors.As(err, new(tls.AlertError)), errors.As(err, new(tls.RecordHeaderError)), errors.As(err, new(*tls.CertificateVerificationError)),
		errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.HostnameError)), errors.As(err, new(x509.CertificateInvalidError)):
		return Denied
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Timeout
	case network != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Disconnected
	}
	return Unknown
}
