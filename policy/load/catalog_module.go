package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
)

// IsModulePath reports whether a text may name a package of a module in a registry
// ("company.example/placement", "company.example/placement@v0.2.0"), and no folder.
func IsModulePath(text string) bool {
	base, _, _ := ast.SplitPackageVersion(text)
	host, _, _ := strings.Cut(base, "/")
	return strings.Contains(host, ".") && module.CheckPathWithoutVersion(base) == nil
}

// FetchCatalog returns the catalog that is a package of a module in the registry that the
// environment (CUE_REGISTRY) names. The version is the one in the package's path, else
// the one that the module of the folder in depends on, else the newest release.
func FetchCatalog(ctx context.Context, packagePath, in string) (_ *Catalog, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the catalog %s: %w", packagePath, err)
		}
	}()
	reg, err := newRegistry(true)
	if err != nil {
		return nil, err
	}
	mv, below, err := versionOf(ctx, reg, packagePath, in)
	if err != nil {
		return nil, err
	}
	at, err := reg.Fetch(ctx, mv)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(at.FS, path.Join(at.Dir, below))
	if err != nil {
		return nil, err
	}
	c := &Catalog{ImportPath: path.Join(mv.BasePath(), below), Module: mv.Path(), Version: mv.Version(), Examples: files}
	if _, err := fs.Stat(files, "."); err != nil {
		return nil, fmt.Errorf("%s of %s has no folder %s", mv.Version(), mv.Path(), below)
	}
	if err := c.read(files, c.ImportPath); err != nil {
		return nil, err
	}
	if len(c.Entries) == 0 {
		return nil, fmt.Errorf("the package has no entry: a definition with a definition inside that is a #Policy or #Pool of %s", schemaPackage)
	}
	if path.Base(c.ImportPath) != c.Package {
		c.ImportPath += ":" + c.Package
	}
	return c, nil
}

// versionOf returns the module that a package is in, in the version that is meant, and
// where in the module it is.
func versionOf(ctx context.Context, reg registry, packagePath, in string) (mv module.Version, below string, err error) {
	base, said, _ := ast.SplitPackageVersion(packagePath)
	pinned := dependencies(in)
	for root := base; strings.Contains(root, "/"); root = path.Dir(root) {
		below = strings.TrimPrefix(strings.TrimPrefix(base, root), "/")
		if full, err := module.NewVersion(root, said); said != "" && err == nil && full.IsCanonical() {
			// Whether it is there is seen when it is fetched, but for the packages of a module.
			_, err := reg.ModFile(ctx, full)
			if err == nil || !errors.Is(err, modregistry.ErrNotFound) {
				return full, below, err
			}
			continue
		}
		for dependency, version := range pinned {
			if p, major, _ := ast.SplitPackageVersion(dependency); p == root && (said == "" || said == major) {
				mv, err := module.NewVersion(dependency, version)
				return mv, below, err
			}
		}
		wanted := root
		if said != "" {
			wanted += "@" + said
		}
		versions, err := reg.ModuleVersions(ctx, wanted)
		if err != nil {
			return module.Version{}, "", err
		}
		if newest, ok := newestOf(versions); ok {
			mv, err := module.NewVersion(root, newest)
			return mv, below, err
		}
	}
	return module.Version{}, "", fmt.Errorf("the registry has no such module; see CUE_REGISTRY for where it looks, and the version if one is given")
}

// newestOf returns the newest of the versions, of which releases count before candidates.
// They are sorted.
func newestOf(versions []string) (string, bool) {
	for _, v := range slices.Backward(versions) {
		if !strings.Contains(v, "-") {
			return v, true
		}
	}
	if len(versions) == 0 {
		return "", false
	}
	return versions[len(versions)-1], true
}

// dependencies returns the versions that the module of a folder asks for, by the module's
// path with its major version; nil if there are none.
func dependencies(dir string) map[string]string {
	_, _, said, err := moduleFileOf(dir)
	if err != nil {
		return nil
	}
	return said.deps
}

// moduleFileOf reads the file of the module that a folder is in, and returns its text and
// what that says.
func moduleFileOf(dir string) (file string, text []byte, said moduleFacts, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, said, err
	}
	root, found := moduleRoot(abs)
	if !found {
		return "", nil, said, fmt.Errorf("%s is in no CUE module, in which the version could be written down; run \"kubectl sched init\", or \"cue mod init\" in the root of the repository", dir)
	}
	file = shownBelow(abs, dir, filepath.Join(root, moduleFileName))
	if text, err = os.ReadFile(file); err != nil {
		return "", nil, said, err
	}
	said, err = readModuleFile(file, text)
	return file, text, said, err
}

// Required returns the file of the module that the policies in a folder are in, and its
// text, from before and with the dependency on the catalog's module. They are equal where
// it says so already, and where the catalog comes from no registry the file is "".
func (c *Catalog) Required(dir string) (file string, before, after []byte, err error) {
	if c.Module == "" {
		return "", nil, nil, nil
	}
	file, before, said, err := moduleFileOf(dir)
	if err != nil {
		return "", nil, nil, err
	}
	switch version, there := said.deps[c.Module]; {
	case there && version == c.Version:
		return file, before, before, nil
	case there:
		return "", nil, nil, fmt.Errorf("%s depends on %s of %s, not on %s; change it there, or name that version", file, version, c.Module, c.Version)
	}
	return file, before, c.withDependency(before), nil
}

// withDependency appends the dependency to the text of a module file. Fields of one name
// unify, so what is there stays as it is.
func (c *Catalog) withDependency(text []byte) []byte {
	line := "deps: " + strconv.Quote(c.Module) + ": v: " + strconv.Quote(c.Version) + "\n"
	return append(append(bytes.TrimRight(bytes.Clone(text), "\n"), '\n'), line...)
}
