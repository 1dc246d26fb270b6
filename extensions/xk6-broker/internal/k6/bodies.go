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

// bodies are the message bodies in files, read once for all VUs.
type bodies struct {
	Count int `js:"count"`
	all   [][]byte
}

var errBodiesInInit = errors.New("bodies: files are read in the init context only, as with open()")

// bodies reads the bodies for produce: a file, its lines, or all files of a folder.
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
	key := fmt.Sprint(lines, " ", path)
	b, ok := in.run.files.Load(key)
	if !ok {
		read, err := readBodies(fs, path, lines)
		if err != nil {
			return nil, fmt.Errorf("bodies: %s: %w", file, err)
		}
		b, _ = in.run.files.LoadOrStore(key, read)
	}
	return in.vu.Runtime().ToValue(b).ToObject(in.vu.Runtime()), nil
}

// files returns k6's file system and the path in it of a name, as open() resolves it; nil outside
// of the init context.
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
		return "", nil, fmt.Errorf(
			"%s: files are read in the init context only, as with open(): connect there, or give the text of the file",
			name,
		)
	}
	text, err = fsext.ReadFile(fs, path)
	return path, text, err
}

// byteOrderMark begins the UTF-8 files of some editors.
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
		return nil, errors.New("it has no body")
	}
	return b, nil
}

// bodiesOf reads the option: the value of [instance.bodies], or a list of bodies.
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
