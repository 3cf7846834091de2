package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	cueload "cuelang.org/go/cue/load"

	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// vendorKinds are the folders below cue.mod in which a module may have copies of
// packages.
var vendorKinds = []string{"pkg", "gen", "usr"}

// checkVendored reports whether the module carries a copy of its own of any package
// that is shipped, with a finding if that is not the one of this build. The packages
// that it has no copy of then are where copies would be: served as a module, they
// would make the import of the others ambiguous.
func (set *folderSet) checkVendored(m *cueModule) (bool, diag.Findings) {
	var missing []shippedPackage
	for _, p := range shipped() {
		there, findings := set.checkCopies(m, p)
		if findings.HasErrors() {
			return true, findings
		}
		if !there {
			missing = append(missing, p)
		}
	}
	if len(missing) == len(shipped()) {
		return false, nil
	}
	for _, p := range missing {
		dir := vendorDir(m.root, p)
		files, err := p.texts()
		if err != nil {
			return true, diag.Findings{inputError("input/schema", set.show(m.root), "%v", err)}
		}
		for _, f := range files {
			m.overlay[filepath.Join(dir, f.name)] = cueload.FromBytes(f.data)
		}
	}
	return true, nil
}

// vendorDir is where a module has its copy of a package that is shipped.
func vendorDir(root string, p shippedPackage) string {
	return filepath.Join(root, "cue.mod", "pkg", filepath.FromSlash(policy.ModulePath), p.name)
}

// checkCopies reports whether the module has a copy of the package.
func (set *folderSet) checkCopies(m *cueModule, p shippedPackage) (there bool, findings diag.Findings) {
	for _, kind := range vendorKinds {
		dir := filepath.Join(m.root, "cue.mod", kind, filepath.FromSlash(policy.ModulePath), p.name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		there = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			return true, diag.Findings{inputError("input/unreadable", set.show(dir), "%s", pathProblem(err))}
		}
		for _, e := range entries {
			if !isPolicyFile(e.Name()) {
				continue
			}
			file := filepath.Join(dir, e.Name())
			data, err := m.readFile(file)
			if err != nil {
				return true, diag.Findings{inputError(ruleOfRead(err), set.show(file), "%s", pathProblem(err))}
			}
			want, err := p.files.ReadFile(e.Name())
			if err == nil && bytes.Equal(data, stamped(want)) {
				continue
			}
			message := fmt.Sprintf("the vendored %s has been edited; run \"kubectl sched init --vendor\" to restore it", p.word)
			if v := stampOf(data); v != policy.SchemaVersion {
				message = fmt.Sprintf("the vendored %s is %s, and this plugin's is %s; run \"kubectl sched init --vendor\" to renew it",
					p.word, v, policy.SchemaVersion)
			}
			return true, diag.Findings{inputError("policy/schema-version", set.show(file), "%s", message)}
		}
	}
	return there, nil
}

// stampPrefix begins the first line of a vendored schema file; the version
// follows.
const stampPrefix = "// Vendored by kubectl sched, schema "

// stamped returns a schema file as it is vendored.
func stamped(data []byte) []byte {
	return append([]byte(stampPrefix+policy.SchemaVersion+"; do not edit.\n\n"), data...)
}

// stampOf returns the version that a vendored schema file says it is of.
func stampOf(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	version, ok := bytes.CutPrefix(line, []byte(stampPrefix))
	if !ok {
		return "of no known version"
	}
	v, _, _ := bytes.Cut(version, []byte(";"))
	return string(v)
}
