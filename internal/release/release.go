// Package release makes what a release of the project consists of: archives of the
// plugin with checksums and the manifest for krew, and the image of the scheduler.
// All of it follows from the source, the version and the version of Go alone.
//
// It must not know how anything is signed, tagged or published.
package release

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/release/archive"
	"github.com/kubectl-sched/kubectl-sched/internal/release/bom"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

// Homepage is where the project lives, and where its releases are downloaded.
const Homepage = "https://github.com/kubectl-sched/kubectl-sched"

// Options say which release it is.
type Options struct {
	// Root is the folder of the source.
	Root string
	// Version is the version, as v1.2.3.
	Version string
	// Commit is the git commit of the source, in full.
	Commit string
	// At is when the source was last changed: the commit's time.
	At time.Time
	// Dist is the folder to write to. It is made if need be.
	Dist string
	// Platforms are those to build for; empty for all.
	Platforms []gobuild.Platform
	// Say hears what is done, a line each time.
	Say func(format string, args ...any)
}

// version matches what krew takes for a version, less build metadata, which no tag
// of an image can have.
var version = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// commit matches a whole SHA-1 or SHA-256 of git.
var commit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func (o Options) check() error {
	switch {
	case !version.MatchString(o.Version):
		return fmt.Errorf("version %q is none; write it as v1.2.3 or v1.2.3-rc.1", o.Version)
	case !commit.MatchString(o.Commit):
		return fmt.Errorf("commit %q is none; give the whole hash", o.Commit)
	case o.At.Before(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)):
		return fmt.Errorf("the time %s is before what a zip can say; is SOURCE_DATE_EPOCH set to the commit's?", o.At.UTC().Format(time.RFC3339))
	case o.Dist == "":
		return errors.New("no folder to write to is given")
	}
	return os.MkdirAll(o.Dist, 0o755)
}

// platforms returns those to build for out of all that there are.
func (o Options) platforms(all []gobuild.Platform) ([]gobuild.Platform, error) {
	if len(o.Platforms) == 0 {
		return all, nil
	}
	for _, p := range o.Platforms {
		if !slices.Contains(all, p) {
			return nil, fmt.Errorf("there is no release for %s; there is for %s", p, joined(all))
		}
	}
	return o.Platforms, nil
}

func joined(platforms []gobuild.Platform) string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// write writes a file of the release and returns its checksum.
func (o Options) write(name string, data []byte) (sum string, err error) {
	if err := os.WriteFile(filepath.Join(o.Dist, name), data, 0o644); err != nil {
		return "", fmt.Errorf("write the release: %w", err)
	}
	digest := sha256.Sum256(data)
	o.Say("%s: %d bytes", name, len(data))
	return hex.EncodeToString(digest[:]), nil
}

// billOf returns the bill of materials of a binary, as a file.
func (o Options) billOf(name string, binary []byte) (archive.File, error) {
	text, err := bom.Of(binary, bom.Options{Version: o.Version, At: o.At})
	if err != nil {
		return archive.File{}, fmt.Errorf("%s: %w", name, err)
	}
	return archive.File{Name: name + ".cdx.json", Mode: 0o644, Data: text}, nil
}
