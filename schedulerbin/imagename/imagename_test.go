package imagename_test

import (
	"testing"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
)

// TestReleased holds that releases alone have an image that can be installed
// without being named.
func TestReleased(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v0.1.0", "v1.20.3", "v1.0.0-rc.1"} {
		got, released := imagename.Released(version)
		if want := "ghcr.io/kubectl-sched/placement-scheduler:" + version; !released || got != want {
			t.Errorf("%s: got %q, %t", version, got, released)
		}
	}
	for _, version := range []string{
		"", "(devel)", "unknown", "1.2.3", "v1.2", "v01.2.3", "v1.2.3-dirty", "v1.2.3-4-gabcdef0",
		"v0.0.0-20261130120000-abcdef012345", "v1.2.3+dirty", "v1.2.3-0.20261130120000-abcdef012345", "v1.2.3\n",
	} {
		if got, released := imagename.Released(version); released || got != "" {
			t.Errorf("%q: got %q, %t, and is no release", version, got, released)
		}
	}
}
