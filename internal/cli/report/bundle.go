package report

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// bundle is the archive that is being written. Everything stands in one folder, so that unpacking it makes no mess.
type bundle struct {
	zip    *zip.Writer
	folder string
	now    time.Time
}

// create writes a new archive with what fill adds to it. A file that is there already is not overwritten.
func create(file, folder string, now time.Time, fill func(*bundle) error) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create the report: %w", err)
	}
	b := &bundle{zip: zip.NewWriter(out), folder: folder, now: now}
	if err := errors.Join(fill(b), b.zip.Close(), out.Close()); err != nil {
		// Half a report would stand in the way of the next.
		return fmt.Errorf("write the report %s: %w", file, errors.Join(err, os.Remove(file)))
	}
	return nil
}

func (b *bundle) add(name, content string) error {
	w, err := b.zip.CreateHeader(&zip.FileHeader{Name: path.Join(b.folder, name), Method: zip.Deflate, Modified: b.now})
	if err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

func (b *bundle) addYAML(name string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return b.add(name, string(text))
}

// addObject adds an object without its secrets.
func (b *bundle) addObject(r redactor, folder string, object client.Object) error {
	kind := reflect.TypeOf(object).Elem().Name()
	clean, err := r.object(object)
	if err != nil {
		return fmt.Errorf("redact %s %s: %w", kind, object.GetName(), err)
	}
	clean["kind"] = kind
	return b.addYAML(path.Join(folder, kind, object.GetNamespace(), object.GetName()+".yaml"), clean)
}
