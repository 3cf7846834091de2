package load

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"cuelang.org/go/cue/parser"
)

// Source is the text of a CUE file.
type Source struct {
	// File is the file as the findings of Evaluate name it.
	File string
	Data []byte
}

// PackageOf returns the name of the package that a file's text is of, or "".
func PackageOf(text []byte) string {
	f, err := parser.ParseFile("", text, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return f.PackageName()
}

// Sources returns every .cue file at and below the paths of o, sorted by path. It
// parses nothing. What cannot be read is left out: Evaluate says so.
func Sources(ctx context.Context, o Options) []Source {
	base, err := filepath.Abs(cmp.Or(o.Dir, "."))
	if err != nil {
		return nil
	}
	o.Dir = base
	set := &folderSet{opts: o, modules: map[string]*cueModule{}, display: map[string]string{}, sources: map[string]*cueSource{}}
	files, _ := set.filesToFormat(o)
	var out []Source
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if ctx.Err() != nil {
			break
		}
		m, findings := set.moduleOf(filepath.Dir(file))
		if findings.HasErrors() {
			continue
		}
		if data, err := m.readFile(file); err == nil {
			out = append(out, Source{set.show(file), data})
		}
	}
	return out
}
