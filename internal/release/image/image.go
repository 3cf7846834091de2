// Package image makes the image of a program: one static binary, its licences and
// its bill of materials, from scratch, for an account without rights. The bytes
// follow from the files and the options alone; no daemon and no registry is asked.
//
// It must not know which program it is, nor how it was built.
package image

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kubectl-sched/kubectl-sched/internal/release/archive"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

// User is the account, by number, as which the program runs, and its group: that
// which others know as nonroot.
const User = "65532:65532"

// Options are what all platforms of an image have in common.
type Options struct {
	// Entrypoint is the path of the program in the image, from its root.
	Entrypoint string
	// Labels are put on the image and on its index, as
	// org.opencontainers.image.version.
	Labels map[string]string
	// At is when all of it changed last.
	At time.Time
}

// Of returns the image for a platform, with the files in one layer. Names of files
// are relative to the root.
func Of(o Options, p gobuild.Platform, files []archive.File) (v1.Image, error) {
	var content bytes.Buffer
	if err := archive.Tar(&content, files, o.At); err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	created := v1.Time{Time: o.At.UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: created, CreatedBy: "make image", Comment: o.Labels["org.opencontainers.image.revision"]},
	})
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = created, p.OS, p.Arch
	config.Config = v1.Config{User: User, Entrypoint: []string{o.Entrypoint}, WorkingDir: "/", Labels: o.Labels}
	return mutate.ConfigFile(image, config)
}

// Built is the image for one platform.
type Built struct {
	Platform gobuild.Platform
	Image    v1.Image
}

// Index returns the index of the images, in the order of their platforms.
func Index(o Options, images []Built) (v1.ImageIndex, error) {
	images = slices.SortedFunc(slices.Values(images), func(a, b Built) int {
		return cmp.Compare(a.Platform.String(), b.Platform.String())
	})
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, built := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built.Image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: built.Platform.OS, Architecture: built.Platform.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, o.Labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating an index gave %T", annotated)
	}
	return annotated, nil
}
