package load

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Formatted is a CUE file as it is and as it is to be.
type Formatted struct {
	// File is the file as the user would name it, Path the absolute one.
	File, Path string
	// Root is the folder, absolute, that the file was found below.
	Root string
	// Before is what is there, After the canonical form of it.
	Before, After []byte
	Mode          fs.FileMode
}

// FormatAll formats every .cue file at and below the paths of o, each for the CUE
// language version of its module. It evaluates nothing and writes nothing. The
// files come sorted by Path; those that cannot be read or parsed are findings.
func FormatAll(ctx context.Context, o Options) ([]Formatted, diag.Findings) {
	base, err := filepath.Abs(cmp.Or(o.Dir, "."))
	if err != nil {
		return nil, diag.Findings{inputError("input/path", o.Dir, "the working directory cannot be told: %v", err)}
	}
	o.Dir = base
	set := &folderSet{opts: o, modules: map[string]*cueModule{}, display: map[string]string{}, sources: map[string]*cueSource{}}
	files, findings := set.filesToFormat(o)
	var formatted []Formatted
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if ctx.Err() != nil {
			break
		}
		f, fs := set.format(file)
		findings = append(findings, fs...)
		if !fs.HasErrors() {
			f.Root = files[file]
			formatted = append(formatted, f)
		}
	}
	return formatted, findings.Sort()
}

// filesToFormat maps the files to the folders that they were found below.
func (set *folderSet) filesToFormat(o Options) (map[string]string, diag.Findings) {
	files := map[string]string{}
	var findings diag.Findings
	for _, p := range o.Paths {
		g := given{abs: filepath.Clean(p), shown: filepath.Clean(p)}
		if !filepath.IsAbs(p) {
			g.abs = filepath.Join(o.Dir, p)
		}
		set.given = append(set.given, g)
		info, err := os.Stat(g.abs)
		if err != nil {
			findings = append(findings, inputError("input/path", g.shown, "%s", pathProblem(err)))
			continue
		}
		if !info.IsDir() {
			if filepath.Ext(g.abs) != ".cue" {
				findings = append(findings, inputError("input/path", g.shown, "not a folder and not a .cue file"))
				continue
			}
			files[g.abs] = filepath.Dir(g.abs)
			continue
		}
		dirs := map[string][]string{}
		findings = append(findings, set.walk(g, dirs)...)
		for dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				findings = append(findings, inputError("input/unreadable", set.show(dir), "%s", pathProblem(err)))
			}
			for _, e := range entries {
				if !e.IsDir() && isPolicyFile(e.Name()) {
					files[filepath.Join(dir, e.Name())] = g.abs
				}
			}
		}
	}
	return files, findings
}

func (set *folderSet) format(file string) (Formatted, diag.Findings) {
	m, findings := set.moduleOf(filepath.Dir(file))
	if findings.HasErrors() {
		return Formatted{}, findings
	}
	src, fs := set.source(file, m)
	if src == nil {
		return Formatted{}, fs
	}
	info, err := os.Stat(file)
	if err != nil {
		return Formatted{}, diag.Findings{inputError("input/unreadable", src.display, "%s", pathProblem(err))}
	}
	after, findings := set.formatted(src, m.language)
	if len(findings) > 0 {
		return Formatted{}, findings
	}
	return Formatted{File: src.display, Path: file, Before: src.data, After: after, Mode: info.Mode().Perm()}, nil
}
