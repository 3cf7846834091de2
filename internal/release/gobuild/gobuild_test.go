package gobuild_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

func TestParsePlatform(t *testing.T) {
	t.Parallel()
	p, err := gobuild.ParsePlatform("windows/arm64")
	if err != nil || p != (gobuild.Platform{OS: "windows", Arch: "arm64"}) || p.String() != "windows/arm64" || p.Executable("a") != "a.exe" {
		t.Errorf("got %v, %v", p, err)
	}
	for _, bad := range []string{"", "linux", "linux/", "/amd64", "linux/arm/v7"} {
		if p, err := gobuild.ParsePlatform(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
}

// TestEnvironment holds that what a person has set for builds of their own changes no
// release: of two values of a variable, the last counts.
func TestEnvironment(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=mine")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOAMD64", "v4")
	last := map[string]string{}
	for _, pair := range gobuild.Environment(gobuild.Platform{OS: "darwin", Arch: "arm64"}) {
		name, value, _ := strings.Cut(pair, "=")
		last[name] = value
	}
	for name, want := range map[string]string{"GOFLAGS": "", "CGO_ENABLED": "0", "GOAMD64": "v1", "GOOS": "darwin", "GOARCH": "arm64"} {
		if got := last[name]; got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	c := gobuild.Command{Package: "./cmd/x", Variables: map[string]string{"main.b": "2", "main.a": "1"}}
	got := c.Arguments()
	for _, want := range []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.a=1 -X main.b=2"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
