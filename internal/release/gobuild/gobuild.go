// Package gobuild builds a command of this module for a platform, so that the same
// source gives the same bytes in whatever folder, on whatever machine and under
// whatever environment the same version of Go builds it.
//
// It must not know which commands there are, nor what becomes of a binary.
package gobuild

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Platform is an operating system and a processor, in the words of Go, of krew and
// of images.
type Platform struct{ OS, Arch string }

// String returns the platform as linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Executable returns what a program is called on the platform.
func (p Platform) Executable(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// ParsePlatform reads what String returns.
func ParsePlatform(text string) (Platform, error) {
	os, arch, ok := strings.Cut(text, "/")
	if !ok || os == "" || arch == "" || strings.Contains(arch, "/") {
		return Platform{}, fmt.Errorf("%q is no platform; write it as linux/amd64", text)
	}
	return Platform{OS: os, Arch: arch}, nil
}

// Command is what is built.
type Command struct {
	// Package is the import path of the command, or its folder with ./ before it.
	Package string
	// Variables are set by the linker: their values, by package path and name.
	Variables map[string]string
}

// Arguments are those of "go build" besides the output and the package. They leave
// out what differs between machines (paths, the state of git), symbol tables and
// debugging information.
func (c Command) Arguments() []string {
	flags := "-s -w"
	for _, name := range slices.Sorted(maps.Keys(c.Variables)) {
		flags += " -X " + name + "=" + c.Variables[name]
	}
	return []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=" + flags}
}

// Environment returns the environment in which a build, and a listing of what it is
// built of, is for the platform and for nothing else that the machine has set.
func Environment(p Platform) []string {
	return append(os.Environ(),
		"CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
}

// Build builds the command of the module in folder root into the file output. The
// error has what the compiler said.
func Build(ctx context.Context, root, output string, c Command, p Platform) error {
	arguments := append([]string{"build", "-o", output}, c.Arguments()...)
	build := exec.CommandContext(ctx, "go", append(arguments, c.Package)...)
	build.Dir, build.Env = root, Environment(p)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", c.Package, p, err, out)
	}
	return nil
}
