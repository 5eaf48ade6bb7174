package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/cli/workdir"
)

// The fields of a runtime environment that mean something on this machine.
const (
	envWorkingDir = "working_dir"
	envExcludes   = "excludes"
	envModules    = "py_modules"
	envConda      = "conda"
)

// environment is a runtime environment without anything that is only on this machine.
type environment struct {
	// fields are sent to Ray.
	fields map[string]any
	// directory is the local working directory to upload, or "" when it is a URI.
	directory string
	// excludes are the patterns of what stays here.
	excludes []string
}

// environmentOf reads the runtime environment that the flags name, or that the RayJob holds, and checks all of it.
func environmentOf(f *flags, inJob string) (*environment, error) {
	fields, err := fieldsOf(f, inJob)
	if err != nil {
		return nil, err
	}
	e := &environment{fields: fields}
	if f.workingDir != "" {
		fields[envWorkingDir] = f.workingDir
	}
	for _, step := range []func() error{e.takeDirectory, e.takeExcludes, e.checkModules, e.readRequirements, e.readConda} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// fieldsOf returns the fields of the runtime environment as they were written.
func fieldsOf(f *flags, inJob string) (map[string]any, error) {
	switch {
	case f.runtimeEnvJSON != "":
		return mapping("--runtime-env-json", []byte(f.runtimeEnvJSON), fromJSON)
	case f.runtimeEnv != "":
		content, err := os.ReadFile(f.runtimeEnv)
		if err != nil {
			return nil, fmt.Errorf("read the runtime environment: %w", err)
		}
		return mapping("the runtime environment in "+f.runtimeEnv, content, fromYAML)
	default:
		return mapping("spec.runtimeEnvYAML", []byte(inJob), fromYAML)
	}
}

// fromYAML decodes YAML.
func fromYAML(text []byte, into any) error {
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	return fromJSON(encoded, into)
}

// fromJSON decodes JSON. Numbers keep their digits.
func fromJSON(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("something follows after its end")
	}
	return nil
}

// mapping decodes a mapping; nothing at all is an empty one.
func mapping(what string, text []byte, decode func([]byte, any) error) (map[string]any, error) {
	fields := map[string]any{}
	if len(bytes.TrimSpace(text)) == 0 {
		return fields, nil
	}
	if err := decode(text, &fields); err != nil {
		return nil, fmt.Errorf("%s is not a mapping of names to values: %w", what, err)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	return fields, nil
}

// remote tells whether Ray fetches it from somewhere else.
func remote(path string) bool { return strings.Contains(path, "://") }

// takeDirectory takes out a working directory that is on this machine.
func (e *environment) takeDirectory() error {
	value, given := e.fields[envWorkingDir]
	if !given || value == nil {
		return errors.New("the job needs a working directory: give one with --working-dir, or in the runtime environment")
	}
	path, ok := value.(string)
	if !ok || path == "" {
		return fmt.Errorf("the working_dir of the runtime environment must be a path or a URI, it is %v", value)
	}
	if remote(path) {
		return nil
	}
	if err := workdir.Check(path); err != nil {
		return err
	}
	e.directory = path
	delete(e.fields, envWorkingDir)
	return nil
}

// takeExcludes takes out what only matters to an upload from here.
func (e *environment) takeExcludes() error {
	value, given := e.fields[envExcludes]
	if !given || value == nil {
		return nil
	}
	list, err := texts(value)
	if err != nil {
		return fmt.Errorf("excludes in the runtime environment: %w", err)
	}
	e.excludes = list
	if e.directory != "" {
		delete(e.fields, envExcludes)
	}
	return nil
}

// checkModules refuses modules that are on this machine, rather than letting Ray look for them on the head.
func (e *environment) checkModules() error {
	value, given := e.fields[envModules]
	if !given || value == nil {
		return nil
	}
	list, err := texts(value)
	if err != nil {
		return fmt.Errorf("py_modules in the runtime environment: %w", err)
	}
	for _, module := range list {
		if !remote(module) {
			return fmt.Errorf("py_modules in the runtime environment names %s, which is on this machine: put it into the working directory, or give a URI", module)
		}
	}
	return nil
}

// readRequirements puts the content of a requirements file where its path stands, for the file is on this machine.
func (e *environment) readRequirements() error {
	for _, field := range []string{"pip", "uv"} {
		path, ok := e.fields[field].(string)
		if !ok {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the requirements that %s in the runtime environment names: %w", field, err)
		}
		requirements := []string{}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				requirements = append(requirements, line)
			}
		}
		e.fields[field] = requirements
	}
	return nil
}

// readConda puts the content of an environment file where its path stands. Anything else is the name of an environment on
// the nodes.
func (e *environment) readConda() error {
	path, ok := e.fields[envConda].(string)
	if ending := filepath.Ext(path); !ok || ending != ".yml" && ending != ".yaml" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the environment that conda in the runtime environment names: %w", err)
	}
	e.fields[envConda], err = mapping("the conda environment in "+path, content, fromYAML)
	return err
}

// texts is a value as a list of texts.
func texts(value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("it must be a list of texts, it is %v", value)
	}
	out := make([]string, len(list))
	for i, item := range list {
		if out[i], ok = item.(string); !ok {
			return nil, fmt.Errorf("it must be a list of texts, it holds %v", item)
		}
	}
	return out, nil
}
