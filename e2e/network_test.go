package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xk6-broker/xk6-broker/e2e/harness"
)

const throughNetwork = `
import broker from 'k6/x/broker';
const conn = broker.connect(__ENV.URL, { connectTimeout: '10s' }), p = conn.producer(__ENV.TOPIC);
export const options = { iterations: 1, ...JSON.parse(__ENV.OPTIONS) };
export default async function () {
  try {
    await conn.createTopic(__ENV.TOPIC);
    await p.send('x');
    console.log('SENT');
    await conn.deleteTopic(__ENV.TOPIC);
  } catch (e) { console.log('FAILED ' + e.kind + ': ' + e.message); }
}
`

// k6's options on the network hold for the connections to brokers.
func TestNetworkOptions(t *testing.T) {
	t.Parallel()
	cert, authority := selfSigned(t)
	client := map[string]any{"cert": string(cert.cert), "key": string(cert.key)}
	strict := &tls.Config{Certificates: []tls.Certificate{cert.pair}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority}
	lenient := &tls.Config{Certificates: []tls.Certificate{cert.pair}, MinVersion: tls.VersionTLS12}
	newest := &tls.Config{Certificates: []tls.Certificate{cert.pair}, MinVersion: tls.VersionTLS13}
	choosy := &tls.Config{
		Certificates: []tls.Certificate{cert.pair}, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}
	insecure := map[string]any{"insecureSkipTLSVerify": true}
	for _, name := range []string{"nats", "redis-list", "rabbitmq", "kafka"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real, err := url.Parse(harness.URL(t, "BROKER_URL_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))))
			if err != nil {
				t.Fatal(err)
			}
			port, ownPort := forwarder(t, real.Host, nil, ""), forwarder(t, real.Host, nil, otherLocalIP)
			for i, c := range []struct {
				option, host string
				value        any
				tls          *tls.Config
				more         map[string]any
				want         string
			}{
				{"hosts", "broker.test", map[string]string{"broker.test": "127.0.0.1"}, nil, nil, "SENT"},
				{"blacklistIPs", "127.0.0.1", []string{"127.0.0.0/8"}, nil, nil, `IP (127.0.0.1) is in a blacklisted range`},
				{"blockHostnames", "broker.test", []string{"*.test"}, nil, nil, `hostname (broker.test) is in a blocked pattern`},
				{"dns", "localhost", map[string]string{"policy": "onlyIPv4"}, nil, nil, "SENT"},
				{"dns", "localhost", map[string]string{"policy": "onlyIPv6"}, nil, nil, "FAILED"},
				{"insecureSkipTLSVerify", "127.0.0.1", false, lenient, nil, "FAILED denied"},
				{"insecureSkipTLSVerify", "127.0.0.1", true, lenient, nil, "SENT"},
				{"tlsAuth", "127.0.0.1", []any{}, strict, insecure, "FAILED"},
				{"tlsAuth", "127.0.0.1", []any{client}, strict, insecure, "SENT"},
				{"tlsVersion", "127.0.0.1", "tls1.2", newest, insecure, "FAILED"},
				{"tlsVersion", "127.0.0.1", "tls1.3", newest, insecure, "SENT"},
				{"tlsCipherSuites", "127.0.0.1", []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, choosy, insecure, "FAILED"},
				{"tlsCipherSuites", "127.0.0.1", []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, choosy, insecure, "SENT"},
				{"localIPs", "127.0.0.1", "127.0.0.1", nil, nil, "FAILED"},
				{"localIPs", "127.0.0.1", otherLocalIP, nil, nil, "SENT"},
			} {
				if c.option == "localIPs" && runtime.GOOS != "linux" {
					continue // the machine has one address of its own
				}
				u, to := *real, port
				if c.option == "localIPs" {
					to = ownPort
				}
				q := u.Query()
				if name == "kafka" {
					q.Set("ignoreAdvertised", "true") // there is no other way to the forwarder
				}
				if c.tls != nil {
					if name == "nats" {
						continue // whose servers speak before they encrypt: see TestTLS_OfTheNetwork in xk6-nats
					}
					q.Set("tls", "true")
					to = forwarder(t, real.Host, c.tls, "")
				}
				u.RawQuery, u.Host = q.Encode(), net.JoinHostPort(c.host, to)
				options, env := map[string]any{c.option: c.value}, []string(nil)
				for name, value := range c.more {
					options[name] = value
				}
				if c.option == "localIPs" { // which no script may set
					delete(options, c.option)
					env = []string{fmt.Sprint("K6_LOCAL_IPS=", c.value)}
				}
				text, err := json.Marshal(options)
				if err != nil {
					t.Fatal(err)
				}
				topic := "e2e-network-" + name + "-" + strconv.Itoa(i)
				r := harness.K6(t, append(env, "URL="+u.String(), "TOPIC="+topic, "OPTIONS="+string(text)), "run", "--quiet", harness.Script(t, throughNetwork))
				if !strings.Contains(r.Stderr, c.want) {
					t.Errorf("%s %v: want %s\n%v", c.option, c.value, c.want, r)
				}
			}
		})
	}
}

// A driver whose client library opens connections by itself refuses the options that it would pass over.
func TestNetworkOptions_OwnDialer_Refused(t *testing.T) {
	t.Parallel()
	r := harness.K6(t, []string{"URL=pulsar://127.0.0.1:1", "TOPIC=t", `OPTIONS={"blacklistIPs":["127.0.0.0/8"]}`}, "run", "--quiet", harness.Script(t, throughNetwork))
	if !strings.Contains(r.Stderr, "a dialer of its own, because the client library dials") {
		t.Error(r)
	}
}

// otherLocalIP is an address of the machine beside 127.0.0.1, on Linux.
const otherLocalIP = "127.0.0.9"

// forwarder passes on the connections that it accepts at a port of 127.0.0.1, with TLS where there is a configuration. Those that are not from an address
// it closes, where one is given.
func forwarder(t *testing.T, to string, config *tls.Config, from string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	if config != nil {
		l = tls.NewListener(l, config)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if from != "" && !strings.HasPrefix(c.RemoteAddr().String(), from+":") {
				_ = c.Close()
				continue
			}
			all.Go(func() {
				server, err := net.Dial("tcp", to)
				if err != nil {
					_ = c.Close()
					return
				}
				all.Go(func() { _, _ = io.Copy(server, c); _ = server.Close() })
				_, _ = io.Copy(c, server)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return port
}

type certificate struct {
	pair      tls.Certificate
	cert, key []byte // PEM
}

// selfSigned is a certificate of a server and of a client, and its authority.
func selfSigned(t *testing.T) (c certificate, authority *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c.cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	c.key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	if c.pair, err = tls.X509KeyPair(c.cert, c.key); err != nil {
		t.Fatal(err)
	}
	authority = x509.NewCertPool()
	authority.AppendCertsFromPEM(c.cert)
	return c, authority
}
