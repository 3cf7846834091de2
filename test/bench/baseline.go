package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"go.yaml.in/yaml/v3"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// baseline does what no compiler of policies could do without: it evaluates
// the policies with CUE alone, and decodes and encodes every manifest, one
// after the other.
func baseline(policies, manifests string) error {
	if err := evaluate(policies); err != nil {
		return err
	}
	return filepath.WalkDir(manifests, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var object map[string]any
		if err := yaml.Unmarshal(data, &object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		out, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(out)
		return err
	})
}

// evaluate loads, validates and exports the policies as `cue export` does, with
// the schema vendored.
func evaluate(dir string) error {
	overlay := map[string]load.Source{}
	vendored := filepath.Join(dir, "cue.mod/pkg", policy.ModulePath, "policy")
	schema := policy.Schema()
	files, err := fs.Glob(schema, "*.cue")
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := schema.ReadFile(f)
		if err != nil {
			return err
		}
		overlay[filepath.Join(vendored, f)] = load.FromBytes(data)
	}
	instances := load.Instances([]string{"."}, &load.Config{Dir: dir, Overlay: overlay, Env: []string{"CUE_REGISTRY=none"}})
	if len(instances) != 1 {
		return errors.New("want one instance")
	}
	if err := instances[0].Err; err != nil {
		return err
	}
	value := cuecontext.New().BuildInstance(instances[0])
	if err := value.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return err
	}
	data, err := value.LookupPath(cue.ParsePath("policies")).MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(data)
	return err
}
