package completion_test

import (
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/completion"
)

// TestShim holds that each system gets a program that it can start: kubectl looks
// for the name without an ending, and on Windows for those with one of PATHEXT.
func TestShim(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin"} {
		name, text := completion.Shim(goos)
		if name != "kubectl_complete-sched" || !strings.HasPrefix(text, "#!/bin/sh\n") || strings.Contains(text, "\r") {
			t.Errorf("%s: %s: %q", goos, name, text)
		}
	}
	name, text := completion.Shim("windows")
	if name != "kubectl_complete-sched.cmd" || strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Errorf("windows: %s: %q", name, text)
	}
}
