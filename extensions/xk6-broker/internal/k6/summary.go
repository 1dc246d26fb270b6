package k6

import (
	"fmt"

	"github.com/grafana/sobek"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/report"
)

// The environment of a script says what becomes of the results where it exports the module's own handleSummary.
const (
	envReport    = "BROKER_REPORT"           // on or off
	envName      = "BROKER_REPORT_NAME"      // of the folder
	envDir       = "BROKER_REPORT_DIR"       // where it is made
	envOverwrite = "BROKER_REPORT_OVERWRITE" // true or false
	envMeanwhile = "BROKER_REPORT_MEANWHILE" // on or off: the results so far, once a second
)

// checkSettings fails in init where handleSummary would fail at the end, be it exported or not: who sets these wants results.
func (in *instance) checkSettings() error {
	on, meanwhile, options, err := in.settings()
	if err != nil || !on || len(options) == 0 && !meanwhile {
		return err
	}
	f, err := folderOf(envReport, options)
	if err != nil {
		return err
	}
	if f.Name == "" {
		if meanwhile {
			return fmt.Errorf("%s: the results so far need a name for their folder: give %s", envMeanwhile, envName)
		}
		return nil
	}
	if !in.first {
		return nil
	}
	if meanwhile {
		so := f.Meanwhile()
		in.run.meanwhile.Store(&so)
	}
	return f.Check()
}

// handleSummary writes the results as the environment says, for scripts to export. It returns undefined, so that k6 prints its own
// summary too.
func (in *instance) handleSummary() error {
	on, _, options, err := in.settings()
	if err == nil && on {
		_, err = in.report(in.vu.Runtime().ToValue(options))
	}
	return err
}

// settings reads the environment as scripts see it.
func (in *instance) settings() (on, meanwhile bool, options map[string]any, err error) {
	env, _ := in.vu.Runtime().GlobalObject().Get("__ENV").(*sobek.Object)
	read := func(name, fallback string, allowed ...string) string {
		value := fallback
		if env != nil {
			if v := env.Get(name); v != nil && v.String() != "" {
				value = v.String()
			}
		}
		for _, a := range allowed {
			if value == a {
				return value
			}
		}
		if len(allowed) > 0 && err == nil {
			err = fmt.Errorf("%s: %q is not one of %s, %s", name, value, allowed[0], allowed[1])
		}
		return value
	}
	options = map[string]any{}
	if name := read(envName, ""); name != "" {
		options["name"] = name
	}
	if dir := read(envDir, ""); dir != "" {
		options["dir"] = dir
	}
	if read(envOverwrite, "false", "true", "false") == "true" {
		options["overwrite"] = true
	}
	on = read(envReport, "on", "on", "off") == "on"
	meanwhile = read(envMeanwhile, "off", "on", "off") == "on"
	return on, meanwhile, options, err
}

// folderOf reads what a script, or its environment, says of the folder; the name may be missing.
func folderOf(of string, given map[string]any) (report.Folder, error) {
	o := &options{of: of, given: given}
	f := report.Folder{
		Dir: o.text("dir", reportDir), Name: o.text("name", ""), Overwrite: o.boolean("overwrite"),
	}
	if err := o.done(); err != nil {
		return report.Folder{}, err
	}
	if f.Name != report.Sanitise(f.Name) {
		return report.Folder{}, fmt.Errorf(`%s: option "name": %q is no name for a folder: use letters, digits, '.', '_' and '-'`, of, f.Name)
	}
	return f, nil
}
