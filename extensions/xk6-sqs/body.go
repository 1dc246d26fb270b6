package sqs

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// maxBytes is the largest size of a message, and of a request, with bodies and attributes.
const maxBytes = 1 << 20

// A body that is empty or not text is sent as base64, with an attribute.
const (
	encodingAttribute = "Content-Transfer-Encoding"
	base64Encoding    = "base64"
)

// encodeBody makes text of a body.
func encodeBody(body []byte) (encoded string, isBase64 bool) {
	switch {
	case len(body) == 0:
		return "=", true // the padding of nothing, for there must be something
	case plain(body):
		return string(body), false
	}
	return base64.StdEncoding.EncodeToString(body), true
}

// decodeBody returns false if the body is not base64.
func decodeBody(encoded string) ([]byte, bool) {
	text := bytes.TrimRight([]byte(encoded), "=")
	body := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Decode(body, text)
	return body[:n], err == nil
}

// plain reports whether the service takes it as text: the characters of XML 1.0, and at least one.
func plain(text []byte) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r == '\uFFFE' || r == '\uFFFF' {
			return false
		}
		i += size
	}
	return len(text) > 0
}
