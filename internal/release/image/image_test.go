package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/kubectl-sched/kubectl-sched/internal/release/archive"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/internal/release/image"
)

var (
	amd64   = gobuild.Platform{OS: "linux", Arch: "amd64"}
	arm64   = gobuild.Platform{OS: "linux", Arch: "arm64"}
	options = image.Options{
		Entrypoint: "/program", At: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Labels: map[string]string{"org.opencontainers.image.version": "v1.2.3"},
	}
	files = []archive.File{
		{Name: "program", Mode: 0o755, Data: []byte("\x7fELF")},
		{Name: "licenses/LICENSE", Mode: 0o644, Data: []byte("do as you like")},
	}
)

func of(t *testing.T, p gobuild.Platform) v1.Image {
	t.Helper()
	built, err := image.Of(options, p, files)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestOf holds what a container runtime is told, and that nothing is in the image
// but what was put in.
func TestOf(t *testing.T) {
	t.Parallel()
	built := of(t, arm64)
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{User: "65532:65532", Entrypoint: []string{"/program"}, WorkingDir: "/", Labels: options.Labels}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || !config.Created.Equal(options.At) || len(config.History) != 1 {
		t.Errorf("got %+v", config)
	}
	manifest, err := built.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("it is no OCI image of one layer: %+v", manifest)
	}
	layers, err := built.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	got := map[string]int64{}
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.Mode
	}
	if diff := cmp.Diff(map[string]int64{"program": 0o755, "licenses/LICENSE": 0o644}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestIndex holds that a runtime finds the image of its platform, and that the same
// images in another order are the same index.
func TestIndex(t *testing.T) {
	t.Parallel()
	digests := map[v1.Hash]bool{}
	for _, order := range [][]gobuild.Platform{{amd64, arm64}, {arm64, amd64}} {
		var images []image.Built
		for _, p := range order {
			images = append(images, image.Built{Platform: p, Image: of(t, p)})
		}
		index, err := image.Index(options, images)
		if err != nil {
			t.Fatal(err)
		}
		path, err := layout.Write(t.TempDir(), index)
		if err != nil {
			t.Fatal(err)
		}
		written, err := path.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(written); err != nil {
			t.Error(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if manifest.MediaType != types.OCIImageIndex || manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("got %s, %v", manifest.MediaType, manifest.Annotations)
		}
		var platforms []string
		for _, m := range manifest.Manifests {
			platforms = append(platforms, m.Platform.String())
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
			t.Errorf("platforms (-want +got):\n%s", diff)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("the same images came to %v", digests)
	}
}
