package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy"
)

// InitOptions says what Init writes.
type InitOptions struct {
	// Package is the name of the CUE package; empty means that the folder's
	// name makes one.
	Package string
	// Vendor puts a copy of the schema and the catalog beside the policies, so that plain CUE
	// and editors find it without a registry.
	Vendor bool
	// Document is what the policy file says; empty for the starter document. File is
	// the name of the file; empty for the usual one.
	Document []byte
	File     string
	// Replace overwrites files that are there already.
	Replace bool
}

// ThereError says that a file is there already, which Init does not overwrite.
type ThereError struct{ message string }

// Error says which.
func (e *ThereError) Error() string { return e.message }

// starterName is the policy file that Init writes.
const starterName = "placement.cue"

// Init makes a folder for policies: a starter document with the typed patterns,
// and, unless the folder lies in a CUE module already, a cue.mod. With Vendor,
// the module gets a copy of the schema and the catalog. It returns the files that it
// wrote, and it overwrites none without Replace: if any is there already, nothing is
// written. It writes nothing outside of dir but that copy, which belongs in the module;
// where that is above dir, the copy is left out with a Document.
func Init(dir string, o InitOptions) (written []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("init %s: %w", dir, err)
	}
	pkg := o.Package
	if pkg == "" {
		pkg = packageName(filepath.Base(abs))
	}
	if !packagePattern.MatchString(pkg) {
		return nil, fmt.Errorf("init %s: %q cannot be the name of a package; use lower-case letters and digits, beginning with a letter", dir, pkg)
	}
	document, name := starter(pkg), cmp.Or(o.File, starterName)
	if len(o.Document) > 0 {
		document = o.Document
	}
	files := map[string][]byte{filepath.Join(abs, name): document}
	order := []string{filepath.Join(abs, name)}
	if entries, err := filepath.Glob(filepath.Join(abs, "*.cue")); err == nil && len(entries) > 0 && !o.Replace {
		return nil, &ThereError{fmt.Sprintf("init %s: there are CUE files already, such as %s; choose an empty folder", dir, filepath.Base(entries[0]))}
	}
	root, inModule := moduleRoot(abs)
	if !inModule {
		root = abs
		file := filepath.Join(root, moduleFileName)
		files[file] = []byte("module: " + strconv.Quote("policy.local/"+pkg+"@v0") + "\nlanguage: version: " + strconv.Quote(policy.SchemaLanguage) + "\n")
		order = append(order, file)
	}
	if o.Vendor && (len(o.Document) == 0 || root == abs) {
		vendored, err := vendorFiles(root)
		if err != nil {
			return nil, err
		}
		for _, f := range vendored {
			if old, err := os.ReadFile(f.name); err == nil && bytes.Equal(old, f.data) {
				continue
			}
			files[f.name] = f.data
			order = append(order, f.name)
		}
	}
	for _, name := range order {
		if len(o.Document) > 0 && leavesFolder(abs, name) {
			return nil, fmt.Errorf("init %s: %s lies outside of the folder, because a symbolic link leads there; remove the link", dir, shownBelow(abs, dir, name))
		}
		if _, err := os.Lstat(name); err == nil && !o.Replace {
			return nil, &ThereError{fmt.Sprintf("init %s: %s is there already; nothing was written", dir, shownBelow(abs, dir, name))}
		}
	}
	for _, name := range order {
		if err := writeFile(name, files[name], o.Replace); err != nil {
			return written, fmt.Errorf("init %s: %w", dir, err)
		}
		written = append(written, shownBelow(abs, dir, name))
	}
	return written, nil
}

// leavesFolder reports whether the folder that the file is to be in lies, by way of
// symbolic links, outside of the given one.
func leavesFolder(folder, file string) bool {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false // It is not there yet.
	}
	for at := filepath.Dir(file); len(at) >= len(folder); at = filepath.Dir(at) {
		target, err := filepath.EvalSymlinks(at)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(root, target)
		return err != nil || !filepath.IsLocal(rel)
	}
	return false
}

// Vendor puts the schema and the catalog of this build into the CUE module that dir is
// in, or renews the copies that are there. It returns the files that it wrote; none means
// that the copy was current. It is an error if dir is in no module, or if a
// copy has files that they do not have.
func Vendor(dir string) (written []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("vendor the schema: %w", err)
	}
	root, ok := moduleRoot(abs)
	if !ok {
		return nil, fmt.Errorf("vendor the schema: %s is in no CUE module; run \"kubectl sched init\" first, or \"cue mod init\" in the root of the repository", dir)
	}
	files, err := vendorFiles(root)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range files {
		known[f.name] = true
	}
	for _, p := range shipped() {
		target := vendorDir(root, p)
		entries, err := os.ReadDir(target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("vendor the schema: %w", err)
		}
		for _, e := range entries {
			if isPolicyFile(e.Name()) && !known[filepath.Join(target, e.Name())] {
				return nil, fmt.Errorf("vendor the schema: %s is no file of the %s; move it away", shownBelow(abs, dir, filepath.Join(target, e.Name())), p.word)
			}
		}
	}
	for _, f := range files {
		if old, err := os.ReadFile(f.name); err == nil && bytes.Equal(old, f.data) {
			continue
		}
		if err := writeFile(f.name, f.data, true); err != nil {
			return written, fmt.Errorf("vendor the schema: %w", err)
		}
		written = append(written, shownBelow(abs, dir, f.name))
	}
	return written, nil
}

// namedFile is a file to write.
type namedFile struct {
	name string
	data []byte
}

// vendorFiles returns the files of what is shipped as they are vendored into a
// module.
func vendorFiles(root string) (files []namedFile, err error) {
	for _, p := range shipped() {
		texts, err := p.texts()
		if err != nil {
			return nil, err
		}
		for _, f := range texts {
			files = append(files, namedFile{filepath.Join(vendorDir(root, p), f.name), stamped(f.data)})
		}
	}
	return files, nil
}

// writeFile writes a file whole or not at all, making its folder. Without
// replace, a file that has come about meanwhile is left alone.
func writeFile(name string, data []byte, replace bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".kubectl-sched-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeIfThere(tmp.Name())) }()
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	if !replace {
		// A link fails if the name is taken; not every file system has links.
		err := os.Link(tmp.Name(), name)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(tmp.Name(), name)
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// shownBelow returns a path as one who named dir would write it.
func shownBelow(abs, dir, name string) string {
	rel, err := filepath.Rel(abs, name)
	if err != nil {
		return name
	}
	return filepath.Join(dir, rel)
}

var (
	packagePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	notInPackage   = regexp.MustCompile(`[^a-z0-9_]+`)
)

// PackageName returns the name of the package that Init makes of a folder's.
func PackageName(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	return packageName(filepath.Base(abs)), err
}

// packageName makes a package's name of a folder's.
func packageName(folder string) string {
	name := strings.Trim(notInPackage.ReplaceAllString(strings.ToLower(folder), "_"), "_0123456789")
	if name == "" {
		return "placement"
	}
	return name
}

// starter is the document that Init writes: the typed patterns, and a policy
// that is right for nearly everybody.
func starter(pkg string) []byte {
	return []byte(`// Where our workloads run. Check it with "kubectl sched lint".
package ` + pkg + `

import "github.com/kubectl-sched/kubectl-sched/policy"

// These tie the fields below to the schema, so that plain "cue vet" and the
// editor check them too.
clusters: [string]: policy.#Cluster
pools: [string]:    policy.#Pool
kinds: [string]:    policy.#Kind
policies: [string]: policy.#Policy

policies: {
	// The replicas of a Deployment share neither a zone nor a node, as far as
	// there are others. A policy may override this one, since it is a default.
	"spread-by-default": {
		level: "default"
		workloads: {namespaces: ["*"], kinds: ["apps/Deployment"]}
		spread: zone: strength: "prefer"
		spread: node: strength: "prefer"
	}
}
`)
}
