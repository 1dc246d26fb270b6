package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is a driver with an option of every type.
func sample() Driver {
	return Driver{
		Name: "sample", Schemes: []string{"sample", "sample+tls"}, Features: Features{Start: StartNew},
		Open: func(context.Context, Target) (Conn, error) { return nil, errRefused },
		Classify: func(err error) Kind {
			if errors.Is(err, errRefused) {
				return Disconnected
			}
			return Unknown
		},
		Options: append(ConnectOptions(), []Option{
			{Name: "acks", Scope: OnProducer, Type: Enum, Default: "one", Allowed: []string{"none", "one", "all"}, Profile: map[Profile]string{Durable: "all"}, Doc: "An enum."},
			{Name: "linger", Scope: OnProducer, Type: Duration, Profile: map[Profile]string{Throughput: "5ms"}, Doc: "A duration."},
			{Name: "pulse", Scope: OnConnect, Type: Duration, Default: "10s", Min: int64(time.Second), Max: int64(time.Hour), Step: int64(time.Second), Doc: "Whole seconds."},
			{Name: "batch", Scope: OnProducer | OnConsumer, Type: Int, Default: "100", Min: 1, Max: 1000, Doc: "An integer."},
			{Name: "fetch", Scope: OnConsumer, Type: Size, Default: "64KiB", Doc: "A size."},
			{Name: "deliver", Scope: OnConsumer, Type: Bool, Default: "true", Doc: "A boolean."},
			{Name: "configs", Scope: OnTopic, Type: List, Doc: "A list."},
			{Name: "settings", Scope: OnTopic, Type: Map, Doc: "An object."},
		}...),
	}
}

var errRefused = errors.New("connection refused")

func init() {
	Register(sample())
	alone := sample()
	alone.Name, alone.Schemes, alone.OneHost = "alone", []string{"alone"}, true
	Register(alone)
}

func TestOptionsResolveFromScriptURLProfileAndDefault(t *testing.T) {
	a, err := ParseURL("sample://host:1?acks=none&batch=7&fetch=1MB", map[string]any{"batch": int64(9)})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := a.Resolve(OnProducer, map[string]any{"linger": 2.5})
	if err != nil {
		t.Fatal(err)
	}
	if producer.String("acks") != "none" || producer.Int("batch") != 9 || producer.Duration("linger") != 2500*time.Microsecond {
		t.Errorf("%v", producer)
	}
	consumer, err := a.Resolve(OnConsumer, map[string]any{"deliver": false})
	if err != nil {
		t.Fatal(err)
	}
	if consumer.Int("fetch") != 1e6 || consumer.Bool("deliver") || consumer.Int("batch") != 9 {
		t.Errorf("%v", consumer)
	}
	for profile, want := range map[string]string{"latency": "one 0s", "throughput": "one 5ms", "durable": "all 0s"} {
		a, err := ParseURL("sample://host?profile="+profile, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := a.Resolve(OnProducer, nil)
		if got := fmt.Sprintf("%s %v", v.String("acks"), v.Duration("linger")); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", profile, got, err, want)
		}
	}
}

func TestMistakesNameTheOptionAndWhatIsAllowed(t *testing.T) {
	for url, want := range map[string]string{
		"sample://h?colour=red":        `no option "colour" in the URL: known are profile, acks, batch, configs`,
		"sample://h?bacth=3":           `no option "bacth" in the URL: known are`,
		"sample://h?deLiver=3":         `no option "deLiver" in the URL: known are`,
		"smaple://h":                   `no driver for scheme "smaple": this k6 knows `,
		"sample://h?acks=most":         `option "acks": "most" is not one of none, one, all`,
		"sample://h?batch=0":           `option "batch": "0" is not an integer, at least 1, at most 1000`,
		"sample://h?batch=many":        `option "batch"`,
		"sample://h?fetch=big":         `option "fetch": "big" is not a size`,
		"sample://h?deliver=perhaps":   `option "deliver": "perhaps" is not true or false`,
		"sample://h?linger=soon":       `option "linger": "soon" is not a duration`,
		"sample://h?linger=-1ms":       `option "linger": "-1ms" is not a duration such as "500ms" or a number of milliseconds, at least 0s`,
		"sample://h?pulse=500ms":       `option "pulse": "500ms" is not a duration such as "500ms" or a number of milliseconds, at least 1s, at most 1h0m0s, in steps of 1s`,
		"sample://h?pulse=1500ms":      `option "pulse": "1500ms" is not a duration such as "500ms" or a number of milliseconds, at least 1s, at most 1h0m0s, in steps of 1s`,
		"sample://h?pulse=2000.5":      `option "pulse": "2000.5" is not a duration such as "500ms" or a number of milliseconds, at least 1s, at most 1h0m0s, in steps of 1s`,
		"sample://h?pulse=soon":        `option "pulse": "soon" is not a duration such as "500ms" or a number of milliseconds`,
		"sample://h?fetch=-1KiB":       `option "fetch": "-1KiB" is not a size such as 65536 or "64KiB", at least 0`,
		"sample://h?profile=fast":      "not one of latency, throughput, durable",
		"sample:// h":                  "malformed",
		"nothing://h":                  `no driver for scheme "nothing": this k6 knows `,
		"localhost:1234":               "no driver for scheme",
		"just-a-host":                  "no scheme",
		"sample://u:s3cret@h:port?x=y": "malformed",
	} {
		_, err := ParseURL(url, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in the error: %v", url, err)
		}
	}
	a, err := ParseURL("sample://h", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Resolve(OnTopic, map[string]any{"configs": []any{"a", int64(7)}}); err == nil || err.Error() != `option "configs": a list is not a list of strings` {
		t.Errorf("a number in a list of strings: %v", err)
	}
	if v, err := a.Resolve(OnProducer, map[string]any{"acks": "ALL"}); err != nil || v.String("acks") != "all" {
		t.Errorf("a value in capitals: %v, %v", v, err)
	}
	if _, err := a.Resolve(OnProducer, map[string]any{"fetch": "1KiB"}); err == nil || !strings.Contains(err.Error(), "known are profile, acks, batch, linger") {
		t.Errorf("an option of a consumer passed for one of a producer: %v", err)
	}
	if _, err := ParseURL("sample://h", map[string]any{"password": []any{1}}); err == nil || strings.Contains(err.Error(), "1}") {
		t.Errorf("a secret of the wrong type: %v", err)
	}
}

func TestParseURL_EveryHostIsChecked(t *testing.T) {
	for _, url := range []string{"sample://a:1,b:65535", "sample://[::1]:1,[::2]", "sample://a,b", "sample://", "sample://u:p,w@a:1,b:2//vhost"} {
		if _, err := ParseURL(url, nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for url, want := range map[string]string{
		"sample://a:1,sample://b:2":              "host 2",
		"sample://a:1,sample://b:2,sample://c:3": "host 2",
		"sample://a:1, b:2":                      "host 2",
		"sample://a:1,b :2":                      "host 2",
		"sample://a:1,":                          "host 2",
		"sample://a:1,,b:2":                      "host 2",
		"sample://a:0,b:2":                       "host 1",
		"sample://a:1,b:x":                       "host 2",
		"sample://a:1,::1":                       "host 2",
		"sample://a:1,[::1":                      "host 2",
	} {
		_, err := ParseURL(url, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "host1:4222") {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	if _, err := ParseURL("alone://a,b", nil); err == nil || !strings.Contains(err.Error(), "names 2 hosts, and alone takes one") {
		t.Error(err)
	}
}

func TestOption_Map_ObjectOrPairs(t *testing.T) {
	o := Option{Name: "o", Type: Map}
	for _, c := range []struct {
		given any
		want  string
	}{
		{map[string]any{"a": "x,y", "b": int64(7), "c": 0.5, "d": true, "e": 1e9}, "a=x,y b=7 c=0.5 d=true e=1000000000"},
		{[]string{"a=1,2", "b=c=d"}, "a=1,2 b=c=d"},
		{[]any{"a=1"}, "a=1"},
		{"a=1,b=2", "a=1,b=2"},
		{"", ""},
	} {
		v, err := o.Parse(c.given)
		m, _ := v.(map[string]any)
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			pairs = append(pairs, name+"="+Text(m[name]))
		}
		if got := strings.Join(pairs, " "); err != nil || got != c.want {
			t.Errorf("%v: %s, %v", c.given, got, err)
		}
	}
	for _, given := range []any{"a", "=1", []string{"a=1", "a=2"}, map[string]any{"a": []any{}}, map[string]any{"a": nil}, map[string]any{"": 1}, 7} {
		if v, err := o.Parse(given); err == nil || !strings.Contains(err.Error(), "name=value") {
			t.Errorf("%v: %v, %v", given, v, err)
		}
	}
	a, err := ParseURL("sample://h?settings=cleanup.policy=compact,delete&settings=b=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := a.Resolve(OnTopic, nil)
	if got := v.Map("settings"); got["cleanup.policy"] != "compact,delete" || got["b"] != "2" {
		t.Errorf("%v", v)
	}
}

func TestSecretsStayOut(t *testing.T) {
	a, err := ParseURL("sample://user:s3cret@one:1,two:2/vhost?password=s3cret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.String(); got != "sample://one:1,two:2/vhost" {
		t.Errorf("shown as %s", got)
	}
	v, err := a.Resolve(OnConnect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprint(a.Driver.Redact(v)); strings.Contains(shown, "s3cret") || !strings.Contains(shown, "password:(set)") {
		t.Errorf("redacted: %s", shown)
	}
	_, err = a.Open(t.Context(), "test")
	var e *Error
	if !errors.As(err, &e) || e.Kind != Disconnected || !errors.Is(err, errRefused) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
	if again := a.Driver.Wrap("send", err); again != err { //nolint:errorlint // the very same
		t.Errorf("wrapped twice: %v", again)
	}
}

// What a URL means is in doubt where a password was not escaped, and then nothing of it is quoted.
func TestDoubtfulURLsAreRefusedAndNotQuoted(t *testing.T) {
	const scheme = "sample://"
	for rest, want := range map[string]error{
		"u:1234/S3CRET@127.0.0.1:4222": errMalformed, "u:S3C/RET@h": errMalformed, "u:/S3CRET@h": errMalformed, "S3C/RET@h": errMalformed,
		"u:1234#S3CRET@h": errMalformed, "u:1234#S3CRET": errMalformed, "u:1234?S3CRET@h": errMalformed, "u:S3C?RET=@h": errMalformed,
		"h:1/path@S3CRET": errMalformed, "h?password=S3C@RET": errMalformed, "h?password=S3C#RET": errMalformed, "/u:S3CRET@h": errMalformed,
		"u:S3C%RET@h": errMalformed, "u:S3C%zzRET@h": errMalformed, "u:S3C RET@h": errMalformed, "u:S3C[RET@h": errMalformed, "u:S3CRET\n@h": errMalformed,
		"u:S3CRET": errMalformed, "h:S3CRET?batch=3": errMalformed,
		"h?password=%zzS3CRET": errMalformed, "h?password=S3C;RET": errMalformed, "h?password=S3C&RET": errMalformed, "h?batch=1&password=S3C&RET=1": errMalformed,
	} {
		_, err := ParseURL(scheme+rest, nil)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", rest, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "S3C") {
			t.Errorf("%s is quoted: %v", rest, err)
		}
	}
	for raw, want := range map[string]string{
		"sample:u:S3CRET@h": "malformed", "sample:S3CRET": "malformed", "S3CRET@h": "malformed", "u:S3CRET@sample://h": `no driver for scheme "u"`,
		"sample://h?password=S3CRET&password=S3CRET": `option "password": it is given 2 times in the URL`,
		"sample://h?passwd=S3CRET":                   `no option "passwd"`,
		"sample://h?pwd=S3C&RET=1":                   `no option "pwd"`,
		"sample://h?batch=1&batch=2":                 `option "batch": it is given 2 times in the URL`,
	} {
		if _, err := ParseURL(raw, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "S3C") {
			t.Errorf("%s: %v; want %s", raw, err, want)
		}
	}
	for raw, want := range map[string]string{ // and these are right
		"sample://u:S3C%2FR%23E%3FT%40%25@h:1/v%40host": "S3C/R#E?T@%", "sample://u:S3C@RET:,@h:1/v%40host": "S3C@RET:,", "sample://u:@h:1/v%40host": "",
	} {
		a, err := ParseURL(raw, nil)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if password, _ := a.url.User.Password(); password != want || a.String() != "sample://h:1/v@host" {
			t.Errorf("%s: password %q at %s", raw, password, a)
		}
	}
	a, err := ParseURL("sample://h?configs=a&configs=b,c", nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := a.Resolve(OnTopic, nil); strings.Join(v.List("configs"), " ") != "a b c" {
		t.Errorf("a list given twice: %v", v)
	}
}

func TestKindsOfErrors(t *testing.T) {
	d := sample()
	for want, err := range map[Kind]error{
		"": nil, Canceled: context.Canceled, Timeout: fmt.Errorf("wait: %w", context.DeadlineExceeded), Closed: ErrClosed,
		Unsupported: fmt.Errorf("nack: %w", errors.ErrUnsupported), Rejected: &OptionError{"tlsCA", errRefused},
		Disconnected: errRefused, Unknown: errors.New("odd"), Denied: &Error{Kind: Denied, Err: errRefused},
	} {
		if got := d.KindOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestTLSIsAskedForInEveryWay(t *testing.T) {
	for url, want := range map[string]bool{
		"sample://h": false, "sample+tls://h": true, "sample://h?tls=true": true, "sample://h?tlsInsecure=true": true, "sample://h?tlsServerName=x": true,
	} {
		a, err := ParseURL(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := a.Resolve(OnConnect, nil)
		c, err := Target{URL: a.url, Options: v}.TLS()
		if err != nil || (c != nil) != want {
			t.Errorf("%s: %v, %v", url, c, err)
		}
	}
	a, _ := ParseURL("sample://h?tlsCA=/nowhere/ca.pem", nil)
	v, _ := a.Resolve(OnConnect, nil)
	if _, err := (Target{URL: a.url, Options: v}).TLS(); err == nil || !strings.Contains(err.Error(), `option "tlsCA"`) {
		t.Errorf("%v", err)
	}
}

func TestADriverThatContradictsItselfIsNotRegistered(t *testing.T) {
	for name, change := range map[string]func(*Driver){
		"no name":      func(d *Driver) { d.Name = "" },
		"taken scheme": func(d *Driver) { d.Name = "other" },
		"a place that is not claimed": func(d *Driver) {
			d.Schemes, d.Place = []string{"x"}, func(*Message) Place { return Place{} }
		},
		"positions without a place": func(d *Driver) { d.Schemes, d.Features.Position = []string{"x"}, Offset },
		"bad default": func(d *Driver) {
			d.Schemes, d.Options = []string{"x"}, []Option{{Name: "a", Scope: OnConnect, Type: Int, Default: "b", Doc: "c"}}
		},
		"undocumented": func(d *Driver) { d.Schemes, d.Options = []string{"x"}, []Option{{Name: "a", Scope: OnConnect}} },
		"same name twice": func(d *Driver) {
			d.Schemes, d.Options = []string{"x"}, []Option{{Name: "a", Scope: OnConnect, Doc: "c"}, {Name: "a", Scope: OnTopic, Doc: "c"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			d := sample()
			change(&d)
			Register(d)
		})
	}
}

func TestWatchersHearOfAllDrivers(t *testing.T) {
	if _, err := Lookup("late"); err == nil {
		t.Skip("registered by an earlier run in this process")
	}
	var heard []string
	Watch(func(d *Driver) { heard = append(heard, d.Name) })
	late := sample()
	late.Name, late.Schemes = "late", []string{"late"}
	Register(late)
	if got := strings.Join(heard, " "); got != "alone sample late" {
		t.Errorf("heard of %s", got)
	}
	if len(Drivers()) != 3 {
		t.Errorf("%d drivers", len(Drivers()))
	}
}

func TestTheClockGoesForward(t *testing.T) {
	a := Now()
	if b := Now(); b < a || a < time.Now().Add(-time.Hour).UnixNano() || a > time.Now().Add(time.Hour).UnixNano() {
		t.Errorf("%d then %d", a, b)
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"sample://user:pw@a:1,b:2/x?acks=all&fetch=1KiB", "sample:", "sample:?batch=3", "://", "sample://[::1]:9,[::2]:9", "sample://h?%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := ParseURL(raw, nil)
		if err != nil {
			return
		}
		for _, scope := range []Scope{OnConnect, OnProducer, OnConsumer, OnTopic} {
			if _, err := a.Resolve(scope, nil); err != nil {
				t.Errorf("%q was taken, and then not: %v", raw, err)
			}
		}
	})
}

// FuzzPassword puts a password into a URL as it is.
func FuzzPassword(f *testing.F) {
	for _, seed := range []string{"s3cret", "1234/s3cret", "s3c?ret=x", "12#s3c", "s3c@re/t", "s3c,ret", "%41s3", "s3 c", "&s3c=", "//s3c"} {
		f.Add("u:", seed)
		f.Add("", seed)
	}
	f.Fuzz(func(t *testing.T, user, password string) {
		const behind = "@host:1,other:2/path?batch=3"
		if strings.ContainsAny(user, "@/?#") {
			t.Skip() // that is the user's own part of the URL
		}
		a, err := ParseURL("sample://"+user+password+behind, nil)
		said := fmt.Sprint(err)
		if err == nil {
			v, _ := a.Resolve(OnConnect, nil)
			said = a.String() + fmt.Sprint(a.Driver.Redact(v))
		}
		// What is said of any URL is no secret.
		known := errMalformed.Error() + "sample://host:1,other:2/path map[password: pulse:10s tls:false tlsCA: tlsCert: tlsInsecure:false tlsKey: tlsServerName: user:]"
		for i := range len(password) - 2 {
			if piece := password[i : i+3]; strings.Contains(said, piece) && !strings.Contains(known, piece) {
				t.Errorf("%q shows %q: %s", user+password, piece, said)
			}
		}
	})
}

func FuzzOption(f *testing.F) {
	for kind := range uint8(7) {
		f.Add(kind, "1h")
	}
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		o := Option{Name: "o", Type: Type(kind % 7), Allowed: []string{"a"}, Min: 1, Max: 1 << 40}
		v, err := o.Parse(text)
		if err != nil {
			return
		}
		var n int64
		switch v := v.(type) {
		case int64:
			n = v
		case time.Duration:
			n = int64(v)
		default:
			return
		}
		if n < o.Min || n > o.Max {
			t.Errorf("%q gave %d", text, n)
		}
	})
}

func BenchmarkNow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Now()
	}
}
