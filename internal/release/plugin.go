package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/completion"
	"github.com/kubectl-sched/kubectl-sched/internal/release/archive"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/internal/release/notices"
	"github.com/kubectl-sched/kubectl-sched/krew"
)

const (
	plugin = "kubectl-sched"
	// Checksums is the name of the file with the checksums of all others.
	Checksums = "checksums.txt"
	// MaxArchive is how large an archive may be, in bytes. krew reads it into
	// memory, and people wait for it.
	MaxArchive = 40 << 20
)

// PluginPlatforms are those that the plugin is released for.
func PluginPlatforms() []gobuild.Platform {
	var all []gobuild.Platform
	for _, os := range []string{"darwin", "linux", "windows"} {
		all = append(all, gobuild.Platform{OS: os, Arch: "amd64"}, gobuild.Platform{OS: os, Arch: "arm64"})
	}
	return all
}

// ArchiveName returns the name of the plugin's archive for a platform.
func ArchiveName(version string, p gobuild.Platform) string {
	ending := ".tar.gz"
	if p.OS == "windows" {
		ending = ".zip"
	}
	return assetName(plugin, version, p) + ending
}

// assetName is what files for one platform are called, less their ending.
func assetName(program, version string, p gobuild.Platform) string {
	return strings.Join([]string{program, version, p.OS, p.Arch}, "_")
}

// Archives writes, into Dist, the archive and the bill of materials for each
// platform, krew's manifest, and the checksums of all that.
func Archives(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	platforms, err := o.platforms(PluginPlatforms())
	if err != nil {
		return err
	}
	sums := map[string]string{}
	var listed []krew.Archive
	for _, p := range platforms {
		o.Say("building %s for %s", plugin, p)
		files, err := o.pluginFiles(ctx, p)
		if err != nil {
			return err
		}
		name := ArchiveName(o.Version, p)
		packed, err := o.pack(name, files)
		if err != nil {
			return err
		}
		if sums[name], err = o.write(name, packed); err != nil {
			return err
		}
		for _, f := range files {
			if f.Name == plugin+".cdx.json" {
				bill := assetName(plugin, o.Version, p) + ".cdx.json"
				if sums[bill], err = o.write(bill, f.Data); err != nil {
					return err
				}
			}
		}
		listed = append(listed, krew.Archive{
			OS: p.OS, Arch: p.Arch, URI: Homepage + "/releases/download/" + o.Version + "/" + name, SHA256: sums[name], Bin: p.Executable(plugin),
		})
	}
	manifest, err := krew.Manifest(o.Version, listed)
	if err != nil {
		return err
	}
	name := krew.Name + ".yaml"
	if sums[name], err = o.write(name, manifest); err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	_, err = o.write(Checksums, []byte(text.String()))
	return err
}

// pluginFiles builds the plugin for a platform and returns what goes into its
// archive.
func (o Options) pluginFiles(ctx context.Context, p gobuild.Platform) ([]archive.File, error) {
	command := gobuild.Command{Package: "./cmd/" + plugin, Variables: map[string]string{"main.version": o.Version, "main.commit": o.Commit}}
	files, err := o.programFiles(ctx, command, p)
	if err != nil {
		return nil, err
	}
	name, text := completion.Shim(p.OS)
	return append(files, archive.File{Name: name, Mode: 0o755, Data: []byte(text)}), nil
}

// programFiles builds a command and returns the binary with what must go wherever it
// goes: our licence, those of others, and the bill of materials.
func (o Options) programFiles(ctx context.Context, command gobuild.Command, p gobuild.Platform) (files []archive.File, err error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Base(command.Package)
	output := filepath.Join(dir, p.Executable(name))
	if err := gobuild.Build(ctx, o.Root, output, command, p); err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(output)
	if err != nil {
		return nil, err
	}
	bill, err := o.billOf(name, binary)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(o.Root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("read our licence: %w", err)
	}
	others, err := notices.Of(ctx, o.Root, command.Package, p)
	if err != nil {
		return nil, err
	}
	return []archive.File{
		{Name: p.Executable(name), Mode: 0o755, Data: binary},
		bill,
		{Name: "LICENSE", Mode: 0o644, Data: licence},
		{Name: "NOTICES", Mode: 0o644, Data: others},
	}, nil
}

// pack returns the archive of that name with the files.
func (o Options) pack(name string, files []archive.File) ([]byte, error) {
	var packed bytes.Buffer
	write := archive.TarGz
	if strings.HasSuffix(name, ".zip") {
		write = archive.Zip
	}
	if err := write(&packed, files, o.At); err != nil {
		return nil, fmt.Errorf("pack %s: %w", name, err)
	}
	if packed.Len() > MaxArchive {
		return nil, fmt.Errorf("%s has %d bytes, and may have %d: what is new in the binary? (go list -deps, go tool nm -size)", name, packed.Len(), MaxArchive)
	}
	return packed.Bytes(), nil
}
