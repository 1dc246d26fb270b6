package k6

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib/fsext"
)

// bodies are what files hold, read once for all VUs.
type bodies struct {
	Count int `js:"count"`
	all   [][]byte
}

var errBodiesInInit = errors.New("bodies: files are read in the init context only, as with open()")

// bodies reads a file, the lines of one, or all files of a folder: the bodies of messages that produce sends.
func (in *instance) bodies(at, opts sobek.Value) (*sobek.Object, error) {
	file, err := textOf("bodies", "the path", at)
	if err != nil {
		return nil, err
	}
	o, err := readOptions("bodies", opts)
	if err != nil {
		return nil, err
	}
	lines := o.boolean("lines")
	if err := o.done(); err != nil {
		return nil, err
	}
	if file == "" {
		return nil, errors.New("bodies: the path of a file or a folder is missing")
	}
	fs, path := in.files(file)
	if fs == nil {
		return nil, errBodiesInInit
	}
	b, err := in.run.bodies(fmt.Sprint(lines, " ", path), func() (*bodies, error) { return readBodies(fs, path, lines) })
	if err != nil {
		return nil, fmt.Errorf("bodies: %s: %w", file, err)
	}
	return in.vu.Runtime().ToValue(b).ToObject(in.vu.Runtime()), nil
}

// files returns k6's files, from which an archive is packed, and the path of one of them: relative names are relative to the script, as with
// open(). It returns nil outside of the init context.
func (in *instance) files(name string) (fs fsext.Fs, path string) {
	env := in.vu.InitEnv()
	if env == nil || in.vu.State() != nil {
		return nil, ""
	}
	return env.FileSystems["file"], fsext.Abs(env.CWD.Path, strings.TrimPrefix(name, "file://"))
}

// readFile reads a file for [driver.Address.ReadFiles].
func (in *instance) readFile(name string) (path string, text []byte, err error) {
	fs, path := in.files(name)
	if fs == nil {
		return "", nil, fmt.Errorf("%s: files are read in the init context only, as with open(): connect there, or give the text of the file", name)
	}
	text, err = fsext.ReadFile(fs, path)
	return path, text, err
}

// bodies reads files unless they have been read: the init context is run for each VU.
func (r *run) bodies(of string, read func() (*bodies, error)) (*bodies, error) {
	r.filesLock.Lock()
	defer r.filesLock.Unlock()
	if b := r.files[of]; b != nil {
		return b, nil
	}
	b, err := read()
	if err == nil {
		r.files[of] = b
	}
	return b, err
}

// byteOrderMark begins the UTF-8 text files of some editors and exports.
var byteOrderMark = []byte("\ufeff")

func readBodies(fs fsext.Fs, at string, lines bool) (*bodies, error) {
	files := []string{at}
	if folder, err := fsext.IsDir(fs, at); err != nil {
		return nil, err
	} else if folder {
		entries, err := fsext.ReadDir(fs, at) // by name
		if err != nil {
			return nil, err
		}
		files = nil
		for _, e := range entries {
			if e.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				files = append(files, path.Join(at, e.Name()))
			}
		}
	}
	b := &bodies{}
	for _, file := range files {
		text, err := fsext.ReadFile(fs, file)
		if err != nil {
			return nil, err
		}
		if !lines {
			b.all = append(b.all, text)
			continue
		}
		for line := range bytes.Lines(bytes.TrimPrefix(text, byteOrderMark)) {
			if len(bytes.TrimSpace(line)) > 0 {
				b.all = append(b.all, bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))
			}
		}
	}
	if b.Count = len(b.all); b.Count == 0 {
		return nil, errors.New("there is no body in it")
	}
	return b, nil
}

// bodiesOf reads the option of that name: what [instance.bodies] gave, or a list of what a body may be.
func (in *instance) bodiesOf(v sobek.Value) ([][]byte, error) {
	if b, ok := v.Export().(*bodies); ok {
		return b.all, nil
	}
	if !isArray(v) {
		return nil, errors.New(`option "bodies": a list of bodies is needed, or broker.bodies(path)`)
	}
	list := v.ToObject(in.vu.Runtime())
	all := make([][]byte, list.Get("length").ToInteger())
	if len(all) == 0 {
		return nil, errors.New(`option "bodies": the list is empty`)
	}
	for i := range all {
		var err error
		if all[i], err = in.bytesOf(list.Get(strconv.Itoa(i))); err != nil {
			return nil, fmt.Errorf(`option "bodies": body %d: %w`, i, err)
		}
	}
	return all, nil
}
