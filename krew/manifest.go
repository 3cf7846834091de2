// Package krew writes the manifest by which krew installs the plugin (v1alpha2, see
// krew's sigs.k8s.io/krew/pkg/index): sched.yaml is what it says whatever the
// release, and the package fills in version, addresses and checksums.
//
// It must not know how archives are made, nor where they lie on this machine.
package krew

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// Name is what the plugin is called in krew's index. A manifest's file has it too.
const Name = "sched"

//go:embed sched.yaml
var template []byte

// Archive is what krew unpacks on one platform.
type Archive struct {
	// OS and Arch are the platform, in the words of Go.
	OS, Arch string
	// URI is where it is downloaded.
	URI string
	// SHA256 is its checksum, as 64 small hexadecimal digits.
	SHA256 string
	// Bin is the name of the plugin in it.
	Bin string
}

// checksum matches what krew takes for one; capitals are an error there.
var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// manifest has the fields of index.Plugin in the order in which they are written.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Caveats          string     `json:"caveats"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// Manifest returns the manifest of a release with the archives.
func Manifest(version string, archives []Archive) ([]byte, error) {
	var m manifest
	if err := yaml.UnmarshalStrict(template, &m); err != nil {
		return nil, fmt.Errorf("read the template of the manifest: %w", err)
	}
	if len(archives) == 0 {
		return nil, errors.New("a manifest needs an archive")
	}
	m.Spec.Version = version
	archives = slices.SortedFunc(slices.Values(archives), func(a, b Archive) int {
		return cmp.Or(cmp.Compare(a.OS, b.OS), cmp.Compare(a.Arch, b.Arch))
	})
	for i, a := range archives {
		if !checksum.MatchString(a.SHA256) {
			return nil, fmt.Errorf("%q is no checksum of the archive for %s/%s", a.SHA256, a.OS, a.Arch)
		}
		if i > 0 && archives[i-1].OS == a.OS && archives[i-1].Arch == a.Arch {
			return nil, fmt.Errorf("two archives are for %s/%s", a.OS, a.Arch)
		}
		m.Spec.Platforms = append(m.Spec.Platforms, platform{
			Selector: selector{map[string]string{"os": a.OS, "arch": a.Arch}}, URI: a.URI, SHA256: a.SHA256, Bin: a.Bin,
		})
	}
	out, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return out, nil
}
