package cli

import "path/filepath"

// leadsOut reports whether a file that is named within the repository is somewhere else:
// a link that a stranger may have put there. dir is where the user stands; both are real
// folders.
func leadsOut(repository, dir, file string) bool {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	target, err := filepath.EvalSymlinks(file)
	return err == nil && liesIn(repository, file) && !liesIn(repository, target)
}
