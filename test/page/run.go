package page

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Put writes the block to the file below the folder that it is titled with, or makes its
// change there.
func (b Block) Put(folder string) error {
	path, text := filepath.Join(folder, filepath.FromSlash(b.Title)), b.Text
	if b.Language == "diff" {
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text, err = b.Change(string(before)); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600))
}

// Shell returns the command that runs a script of a page in the folder, with these
// variables, as somebody types it who has a terminal of 80 columns and a name in git.
func Shell(ctx context.Context, folder, script string, variables []string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = folder
	c.Env = append(slices.Clone(variables), "COLUMNS=80", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=you", "GIT_COMMITTER_EMAIL=you@example.com")
	return c
}
