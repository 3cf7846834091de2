package emit

import (
	"path"
	"path/filepath"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// arguments are the files and folders that the user named, for finding which
// of them a file came from.
type arguments struct {
	given []string
	// named are the arguments as they were written, and first the index of each
	// in its shortest form.
	named map[string]bool
	first map[string]int
}

func newArguments(given []string) arguments {
	a := arguments{given: given, named: map[string]bool{}, first: map[string]int{}}
	for i, name := range given {
		a.named[name] = true
		clean := filepath.Clean(name)
		if _, ok := a.first[clean]; !ok {
			a.first[clean] = i
		}
	}
	return a
}

// place says where a file goes: relative to the argument that named it, or to
// the first whose folder it is in.
func (a arguments) place(f *workload.File) File {
	if f.Mode == 0 {
		return File{Name: StreamFile, Path: f.Name}
	}
	if a.named[f.Name] {
		return File{Name: filepath.Base(f.Name), Path: f.Name, Root: filepath.Dir(f.Name)}
	}
	root := a.folder(f.Name)
	rel, err := filepath.Rel(root, f.Name)
	if err != nil {
		rel = filepath.Base(f.Name)
	}
	return File{Name: path.Clean(filepath.ToSlash(rel)), Path: f.Name, Root: root}
}

// folder returns the first argument whose folder the file is in, or else the
// file's own folder.
func (a arguments) folder(name string) string {
	best := len(a.given)
	for at := filepath.Clean(name); ; {
		if i, ok := a.first[at]; ok {
			best = min(best, i)
		}
		up := filepath.Dir(at)
		if up == at || filepath.Base(at) == ".." { // the folder above ".." has no name
			break
		}
		at = up
	}
	if best < len(a.given) {
		return a.given[best]
	}
	return filepath.Dir(name)
}
