package release_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/test/loopback"
)

// github serves a release on loopback under the addresses that it has on GitHub, and
// returns the environment in which programs reach it.
func github(t *testing.T, dist string) (environment []string) {
	t.Helper()
	home, err := url.Parse(release.Homepage)
	if err != nil {
		t.Fatal(err)
	}
	files := http.StripPrefix(home.Path+"/releases/download/"+version+"/", http.FileServer(http.Dir(dist)))
	return loopback.Serve(t, home.Host, files)
}
