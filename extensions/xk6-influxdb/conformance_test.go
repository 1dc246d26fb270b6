package influxdb_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/xk6-broker/xk6-broker/extensions/xk6-influxdb"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/driver"
	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/drivertest"
)

// database is that of the tests.
const database = "xk6broker_kit"

// serverURL is the driver's URL of the server whose HTTP address the environment has; empty where it has none.
func serverURL() string {
	address, ok := strings.CutPrefix(os.Getenv("BROKER_URL_INFLUXDB"), "http://")
	if !ok {
		return ""
	}
	return "influxdb://" + strings.TrimSuffix(address, "/") + "/" + database + "?createDatabase=true"
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Driver: "influxdb", URL: serverURL(), Stored: stored, Prompt: 20 * time.Millisecond})
}

// column finds a column's value in a row; nil where there is none.
func column(columns []string, row []any, name string) *string {
	for i := range columns {
		if s, ok := row[i].(string); ok && columns[i] == name {
			return &s
		}
	}
	return nil
}

// query asks the server as other programs do.
func query(t testing.TB, q string) (columns []string, rows [][]any) {
	t.Helper()
	resp, err := http.Get(os.Getenv("BROKER_URL_INFLUXDB") + "/query?" + url.Values{"db": {database}, "q": {q}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Results []struct {
			Error  string
			Series []struct {
				Columns []string
				Values  [][]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Results) != 1 || answer.Results[0].Error != "" {
		t.Fatalf("%s: %+v, %v", q, answer, err)
	}
	if len(answer.Results[0].Series) == 0 {
		return nil, nil
	}
	return answer.Results[0].Series[0].Columns, answer.Results[0].Series[0].Values
}

func stored(t testing.TB, topic string) []driver.Message {
	t.Helper()
	columns, rows := query(t, `SELECT * FROM "`+topic+`"`)
	var all []driver.Message
	for _, row := range rows {
		var m driver.Message
		if key := column(columns, row, "key"); key != nil && *key != "" {
			m.Key = []byte(*key)
		}
		if body := column(columns, row, "base64"); body != nil {
			decoded, err := base64.StdEncoding.DecodeString(*body)
			if err != nil {
				t.Fatal(err)
			}
			m.Body = decoded
		} else if body := column(columns, row, "body"); body != nil {
			m.Body = []byte(*body)
		}
		all = append(all, m)
	}
	return all
}

func TestStrangers(t *testing.T) { drivertest.Strangers(t, "influxdb://127.0.0.1:1/database") }
