package sqs_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
)

// answering is a server that answers each request by f, and its URL.
func answering(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return "sqs://key:5ecret@" + strings.TrimPrefix(s.URL, "http://")
}

// refuse answers as the service does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"%s"}`, code, message)
}

func open(t *testing.T, url string, options map[string]any) error {
	t.Helper()
	c, err := address(t, url, options).Open(t.Context(), "test")
	if err == nil {
		_ = c.Close(context.Background())
	}
	return err
}

// TestDenied has the answers that Amazon's own service gives; ElasticMQ checks no credentials.
func TestDenied(t *testing.T) {
	for _, code := range []string{"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "ExpiredToken"} {
		url := answering(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, code, "no") })
		err := open(t, url, nil)
		if kindOf(t, err) != driver.Denied || !strings.Contains(fmt.Sprint(err), code) || strings.Contains(fmt.Sprint(err), "5ecret") {
			t.Errorf("%s: %v", code, err)
		}
	}
	url := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "AccessDeniedException", "no")
	})
	if err := open(t, url, nil); err != nil {
		t.Errorf("who may not list queues may send to one: %v", err)
	}
}

// TestNoCredentials has none, nor a place to find any.
func TestNoCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		t.Setenv(name, value)
	}
	url := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	err := open(t, strings.Replace(url, "key:5ecret@", "", 1), nil)
	if kindOf(t, err) != driver.Denied || !strings.Contains(fmt.Sprint(err), "no credentials in the URL") {
		t.Errorf("no credentials: %v", err)
	}
	if err := open(t, "sqs://key:5ecret@", nil); kindOf(t, err) != driver.Rejected || !strings.Contains(fmt.Sprint(err), `option "region": there is none`) {
		t.Errorf("no region: %v", err)
	}
}

// TestEnvironment takes credentials and region from where AWS's programs do.
func TestEnvironment(t *testing.T) {
	var said atomic.Value
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		said.Store(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, "{}")
	})
	t.Setenv("AWS_ACCESS_KEY_ID", "fromEnvironment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_REGION", "eu-north-1")
	for _, c := range []struct{ url, says string }{
		{strings.Replace(url, "key:5ecret@", "", 1), "fromEnvironment/"}, {url, "key/"}, {url, "/eu-north-1/sqs/"}, {url + "?region=ap-south-2", "/ap-south-2/sqs/"},
	} {
		if err := open(t, c.url, nil); err != nil {
			t.Error(err)
		}
		if got, _ := said.Load().(string); !strings.Contains(got, c.says) {
			t.Errorf("%s: signed %q, want %s", c.url, got, c.says)
		}
	}
}

// TestNothingIsTriedAgain counts the requests of a send and of a greeting that fail in ways that the client library would try again.
func TestNothingIsTriedAgain(t *testing.T) {
	var sends, greetings atomic.Int32
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Amz-Target") {
		case "AmazonSQS.SendMessageBatch":
			sends.Add(1)
			refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "later")
		case "AmazonSQS.ListQueues":
			greetings.Add(1)
			_, _ = io.WriteString(w, "{}")
		default:
			_, _ = io.WriteString(w, `{"QueueUrl":"http://127.0.0.1/q"}`)
		}
	})
	s := dial(t, url, nil)
	err := send(t, s.produce(t, "q"), "m")[0]
	if kindOf(t, err) != driver.Throttled || sends.Load() != 1 || greetings.Load() != 1 {
		t.Errorf("%d sends, %d greetings: %v", sends.Load(), greetings.Load(), err)
	}
}

// TestOddAnswers says nothing of one message, and speaks of one that was not sent.
func TestOddAnswers(t *testing.T) {
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if r.Header.Get("X-Amz-Target") == "AmazonSQS.SendMessageBatch" {
			_, _ = io.WriteString(w, `{"Successful":[{"Id":"0","MessageId":"a","MD5OfMessageBody":"x"},{"Id":"7","MessageId":"b","MD5OfMessageBody":"x"},{"Id":"x"}],
				"Failed":[{"Id":"2","Code":"InternalError","SenderFault":false}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"QueueUrl":"http://127.0.0.1/q"}`)
	})
	errs := send(t, dial(t, url, map[string]any{"inFlight": 1}).produce(t, "q"), "a", "b", "c")
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "does not mention") || kindOf(t, errs[2]) != driver.Rejected {
		t.Errorf("%v", errs)
	}
}

// TestPages has a web server at the port, which has pages for whoever asks.
func TestPages(t *testing.T) {
	for what, status := range map[string]int{"an error": http.StatusNotFound, "a page": http.StatusOK} {
		web := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>welcome</html>")
		})
		if err := open(t, web, nil); err == nil {
			t.Errorf("%s: taken for SQS", what)
		}
	}
}

func TestProofOfAmazonsOwn(t *testing.T) {
	here := standard(t, nil).Conn
	proof := here.(driver.Prover).Proof(t.Context(), driver.ProducerConfig{}, nil)
	if proof.Confirm != driver.Accepted {
		t.Errorf("a server that is not Amazon's: %+v", proof)
	}
}
