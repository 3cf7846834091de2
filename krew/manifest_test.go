package krew_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/krew"
)

var sum = strings.Repeat("0123456789abcdef", 4)

func archive(os, arch string) krew.Archive {
	return krew.Archive{OS: os, Arch: arch, URI: "https://example.com/" + os + "-" + arch + ".tar.gz", SHA256: sum, Bin: "kubectl-sched"}
}

// TestManifest holds what the reviewers of krew's index ask of a manifest; what
// krew's own validator asks is in test/release.
func TestManifest(t *testing.T) {
	t.Parallel()
	text, err := krew.Manifest("v1.2.3", []krew.Archive{archive("linux", "arm64"), archive("darwin", "arm64"), archive("linux", "amd64")})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription, Description, Caveats string
			Platforms                                       []struct {
				Selector struct{ MatchLabels struct{ OS, Arch string } }
				URI      string
				SHA256   string
				Bin      string
			}
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Metadata.Name != krew.Name || m.Spec.Version != "v1.2.3" {
		t.Errorf("it is of %q in version %q", m.Metadata.Name, m.Spec.Version)
	}
	var order []string
	for _, p := range m.Spec.Platforms {
		l := p.Selector.MatchLabels
		order = append(order, l.OS+"/"+l.Arch)
		if want := archive(l.OS, l.Arch); p.URI != want.URI || p.SHA256 != sum || p.Bin != "kubectl-sched" {
			t.Errorf("%s/%s: got %+v", l.OS, l.Arch, p)
		}
	}
	if diff := cmp.Diff([]string{"darwin/arm64", "linux/amd64", "linux/arm64"}, order); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if n := utf8.RuneCountInString(m.Spec.ShortDescription); n > 50 || strings.HasSuffix(m.Spec.ShortDescription, ".") {
		t.Errorf("the short description has %d characters: %q", n, m.Spec.ShortDescription)
	}
	for line := range strings.Lines(m.Spec.Description + m.Spec.Caveats) {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("a line is over 80 columns wide: %q", line)
		}
	}
}

func TestManifestErrors(t *testing.T) {
	t.Parallel()
	capital := archive("linux", "amd64")
	capital.SHA256 = strings.ToUpper(sum)
	for name, archives := range map[string][]krew.Archive{
		"needs an archive":            nil,
		"is no checksum":              {capital},
		"two archives are for linux/": {archive("linux", "amd64"), archive("linux", "amd64")},
	} {
		if _, err := krew.Manifest("v1.2.3", archives); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
