package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/internal/release/image"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
)

// scheduler is the program in the image, and the file with it there.
const scheduler = "placement-scheduler"

// SchedulerPlatforms are those that the scheduler's image is released for.
func SchedulerPlatforms() []gobuild.Platform {
	return []gobuild.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
}

// LayoutName returns the name of the folder with the image of all platforms, as an
// OCI layout.
func LayoutName(version string) string { return strings.Join([]string{scheduler, version, "oci"}, "_") }

// LoadableName returns the name of the file with the image of one platform that
// "docker load", "podman load" and "ctr images import" take.
func LoadableName(version string, p gobuild.Platform) string {
	return assetName(scheduler, version, p) + ".docker.tar"
}

// DigestName returns the name of the file with the digest of the index.
func DigestName(version string) string {
	return strings.Join([]string{scheduler, version}, "_") + ".digest"
}

// Image writes, into Dist, the scheduler's image: an OCI layout for all platforms,
// an archive to load and a bill of materials for each, and the digest of the index.
func Image(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	platforms, err := o.platforms(SchedulerPlatforms())
	if err != nil {
		return err
	}
	kubernetes, err := moduleVersion(ctx, o.Root, "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	options := image.Options{Entrypoint: "/" + scheduler, Labels: o.labels(kubernetes), At: o.At}
	reference, err := name.NewTag(imagename.Of(o.Version), name.StrictValidation)
	if err != nil {
		return fmt.Errorf("name the image: %w", err)
	}
	var images []image.Built
	for _, p := range platforms {
		o.Say("building %s for %s", scheduler, p)
		built, err := o.schedulerImage(ctx, options, kubernetes, p)
		if err != nil {
			return err
		}
		file := LoadableName(o.Version, p)
		if err := tarball.WriteToFile(filepath.Join(o.Dist, file), reference, built); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		images = append(images, image.Built{Platform: p, Image: built})
	}
	index, err := image.Index(options, images)
	if err != nil {
		return err
	}
	return o.writeLayout(reference, index)
}

// schedulerImage builds the scheduler and returns its image for the platform, whose
// bill of materials it writes beside.
func (o Options) schedulerImage(ctx context.Context, options image.Options, kubernetes string, p gobuild.Platform) (v1.Image, error) {
	command := gobuild.Command{
		Package: "./cmd/" + scheduler,
		// What --version and the metric kubernetes_build_info say, as upstream's do.
		Variables: map[string]string{"k8s.io/component-base/version.gitVersion": kubernetes},
	}
	files, err := o.programFiles(ctx, command, p)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		switch f.Name {
		case scheduler:
			continue
		case scheduler + ".cdx.json":
			if _, err := o.write(assetName(scheduler, o.Version, p)+".cdx.json", f.Data); err != nil {
				return nil, err
			}
			files[i].Name = "sbom/" + f.Name
		default:
			files[i].Name = "licenses/" + f.Name
		}
	}
	return image.Of(options, p, files)
}

// labels are those of the OCI image specification (annotations.md), and the release
// of Kubernetes that the scheduler is.
func (o Options) labels(kubernetes string) map[string]string {
	const oci = "org.opencontainers.image."
	return map[string]string{
		oci + "title":                            scheduler,
		oci + "description":                      "kube-scheduler with the plugins of kubectl sched",
		oci + "version":                          o.Version,
		oci + "revision":                         o.Commit,
		oci + "created":                          o.At.UTC().Format(time.RFC3339),
		oci + "source":                           Homepage,
		oci + "url":                              Homepage,
		oci + "documentation":                    Homepage + "/blob/" + o.Version + "/docs/operating.md",
		oci + "licenses":                         "Apache-2.0",
		"kubectl-sched.github.io/kube-scheduler": kubernetes,
	}
}

// writeLayout replaces the OCI layout, in which the index has the image's tag, and
// writes the digest of the index.
func (o Options) writeLayout(reference name.Tag, index v1.ImageIndex) error {
	folder := filepath.Join(o.Dist, LayoutName(o.Version))
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": reference.TagStr()})
	if err := path.AppendIndex(index, named); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	o.Say("%s@%s", reference.Name(), digest)
	_, err = o.write(DigestName(o.Version), []byte(digest.String()+"\n"))
	return err
}

// moduleVersion returns the version of a module that the source in root is built
// with.
func moduleVersion(ctx context.Context, root, module string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-mod=readonly", "-f", "{{.Version}}", module)
	list.Dir = root
	out, err := list.Output()
	if version := strings.TrimSpace(string(out)); err == nil && version != "" {
		return version, nil
	}
	return "", errors.Join(fmt.Errorf("find the version of %s", module), err)
}
