package e2e

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

// Files that options name are relative to the script and part of an archive, as those of open() are.
func TestFilesOfOptions_RelativeToScript_Archived(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Influxdb-Version", "1.11")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	script := harness.Script(t, `
import broker from 'k6/x/broker';
const conn = broker.connect('`+strings.Replace(server.URL, "https", "influxdb+tls", 1)+`/db?tlsCA=certs/ca.pem');
const series = conn.producer('cpu');
export default async function () { await series.ready(); console.log('READY'); }
`)
	folder := filepath.Dir(script)
	run := func(what string) {
		t.Helper()
		if r := harness.K6(t, nil, "run", "--quiet", what); r.Code != 0 || !strings.Contains(r.Stdout+r.Stderr, "READY") {
			t.Errorf("%s: %v", what, r)
		}
	}
	if r := harness.K6(t, nil, "run", "--quiet", script); r.Code == 0 || !strings.Contains(r.Stderr, filepath.Join(folder, "certs", "ca.pem")) {
		t.Errorf("no file: %v; want an error that says where it was looked for", r)
	}
	if err := os.Mkdir(filepath.Join(folder, "certs"), 0o700); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(folder, "certs", "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	run(script)
	archive := filepath.Join(t.TempDir(), "archive.tar")
	if r := harness.K6(t, nil, "archive", "--quiet", "-O", archive, script); r.Code != 0 {
		t.Fatal(r)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	run(archive)
}
