package harness

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Pull begins a script that breaks things: pull('name') calls the function of Levers with that
// name, and returns when it is done.
const Pull = `
import http from 'k6/http';
function pull(name) {
  const r = http.post(__ENV.LEVERS + '/' + name, null, { timeout: '300s' });
  if (r.status !== 200) throw new Error(name + ': ' + r.body);
}
`

// Levers serves functions to a script, and returns the environment for it.
func Levers(t *testing.T, all map[string]func() error) string {
	t.Helper()
	mux := http.NewServeMux()
	for name, do := range all {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, _ *http.Request) {
			if err := do(); err != nil {
				t.Errorf("%s: %v", name, err)
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return "LEVERS=" + server.URL
}
