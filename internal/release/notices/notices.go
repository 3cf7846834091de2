// Package notices collects the licences of what is linked into a command, which must
// go wherever the binary goes: those of the modules, those that folders in them have
// of their own, and Go's.
//
// It maps a command and a platform to a text. It must not know what a licence asks
// for, nor judge it.
package notices

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

// licence matches the names of files that hold a licence, or what a licence wants
// to be passed on.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([._-].*)?$`)

// notLicence matches names that licence matches and that are code.
var notLicence = regexp.MustCompile(`(?i)\.(go|sh|py|tmpl|json)$`)

// linked is what "go list" says of a package.
type linked struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// Of returns the licences of all that is linked into the command of the module in
// folder root, on the platform. Equal texts are given once, with all that are under
// them. A module without a licence is an error: nobody may pass it on.
func Of(ctx context.Context, root, command string, p gobuild.Platform) ([]byte, error) {
	packages, err := list(ctx, root, command, p)
	if err != nil {
		return nil, err
	}
	goroot, err := run(ctx, root, p, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	under := map[string]map[string]bool{} // who is under a text
	add := func(owner, file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the licence of %s: %w", owner, err)
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
		if under[text] == nil {
			under[text] = map[string]bool{}
		}
		under[text][owner+" ("+filepath.Base(file)+")"] = true
		return nil
	}
	goLicences, err := in(strings.TrimSpace(string(goroot)))
	if err != nil || len(goLicences) == 0 {
		return nil, errors.Join(errors.New("the licence of Go is not in GOROOT"), err)
	}
	for _, file := range goLicences {
		if err := add("the Go standard library", file); err != nil {
			return nil, err
		}
	}
	for _, pkg := range packages {
		if pkg.Standard || pkg.Module == nil || pkg.Module.Main {
			continue
		}
		if err := ofPackage(pkg, add); err != nil {
			return nil, err
		}
	}
	return text(command, under), nil
}

// ofPackage adds the licences in the folder of the package and in those above it, up
// to the module's.
func ofPackage(pkg linked, add func(owner, file string) error) error {
	module, version, top := pkg.Module.Path, pkg.Module.Version, pkg.Module.Dir
	if r := pkg.Module.Replace; r != nil {
		module, version, top = r.Path, r.Version, r.Dir
	}
	found := 0
	for dir := pkg.Dir; ; dir = filepath.Dir(dir) {
		files, err := in(dir)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(top, dir)
		if err != nil || strings.HasPrefix(inside, "..") {
			return fmt.Errorf("package %s is not in the folder %s of its module", pkg.ImportPath, top)
		}
		owner := module + " " + version
		if inside != "." {
			owner = module + "/" + filepath.ToSlash(inside) + " " + version
		}
		found += len(files)
		for _, file := range files {
			if err := add(owner, file); err != nil {
				return err
			}
		}
		if inside == "." {
			break
		}
	}
	if found == 0 {
		return fmt.Errorf("module %s %s, of which %s is linked, has no file with a licence: it may not be passed on", module, version, pkg.ImportPath)
	}
	return nil
}

// in returns the files of a folder that hold licences, in order.
func in(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for licences: %w", err)
	}
	var files []string
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && licence.MatchString(e.Name()) && !notLicence.MatchString(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// list returns the packages that are linked into the command.
func list(ctx context.Context, root, command string, p gobuild.Platform) ([]linked, error) {
	out, err := run(ctx, root, p, "list", "-deps", "-mod=readonly", "-json=ImportPath,Dir,Standard,Module", command)
	if err != nil {
		return nil, err
	}
	var packages []linked
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg linked
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		packages = append(packages, pkg)
	}
}

// run runs the go command as a build for the platform would.
func run(ctx context.Context, root string, p gobuild.Platform, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = root, gobuild.Environment(p)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return out, nil
}

// text writes the texts, those of the most first.
func text(command string, under map[string]map[string]bool) []byte {
	texts := slices.SortedFunc(maps.Keys(under), func(a, b string) int {
		return cmp.Or(len(under[b])-len(under[a]), strings.Compare(a, b))
	})
	var out bytes.Buffer
	fmt.Fprintf(&out, "What %s is built of, besides its own source, and under which terms.\n", filepath.Base(command))
	for _, t := range texts {
		fmt.Fprintf(&out, "\n%s\n\n", strings.Repeat("=", 80))
		for _, owner := range slices.Sorted(maps.Keys(under[t])) {
			fmt.Fprintf(&out, "%s\n", owner)
		}
		fmt.Fprintf(&out, "\n%s\n\n%s\n", strings.Repeat("-", 80), t)
	}
	return out.Bytes()
}
