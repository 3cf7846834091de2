package release_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-sched/kubectl-sched/internal/release"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/imagename"
)

// account is as whom the scheduler runs in its image, user and group.
const account = 65532

// TestImage holds what the image is: what the Deployment counts on, nothing to break
// out with, and the name by which the plugin installs it.
func TestImage(t *testing.T) {
	t.Parallel()
	dir := made.get(t)
	image := imageOf(t, dir)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/placement-scheduler"}) || len(c.Cmd)+len(c.Env)+len(c.Volumes) > 0 || c.Shell != nil {
		t.Errorf("the configuration is %+v", c)
	}
	labels := map[string]string{"version": version, "revision": commit(t), "created": "2026-03-04T05:06:07Z", "source": release.Homepage, "licenses": "Apache-2.0", "title": deploy.Name}
	for label, want := range labels {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, not %q", label, got, want)
		}
	}
	if config.OS != "linux" || config.Architecture != host.Arch {
		t.Errorf("it is for %s/%s", config.OS, config.Architecture)
	}
	files := unpack(t, image, t.TempDir())
	want := []string{"licenses/LICENSE", "licenses/NOTICES", "placement-scheduler", "sbom/placement-scheduler.cdx.json"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	binary, err := elf.NewFile(bytes.NewReader(files["placement-scheduler"]))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 || binary.Section(".interp") != nil {
		t.Errorf("the program needs %v (%v), which are not in the image", libraries, err)
	}
	tag, err := name.NewTag(imagename.Of(version))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(filepath.Join(dir, release.LoadableName(version, host)), &tag)
	if err != nil {
		t.Fatalf("docker load would find no %s: %v", tag, err)
	}
	inLayout, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if toLoad, err := loaded.ConfigName(); err != nil || toLoad != inLayout {
		t.Errorf("the layout has image %s, and docker load would have %s (%v)", inLayout, toLoad, err)
	}
}

// imageOf returns the image for this machine out of the layout, by way of the tag and
// of the digest that the release tells.
func imageOf(t *testing.T, dir string) v1.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(filepath.Join(dir, release.LayoutName(version)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := os.ReadFile(filepath.Join(dir, release.DigestName(version)))
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != strings.TrimSpace(string(digest)) || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout has %+v, and the release tells %s", manifest.Manifests, digest)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(images.Manifests) != 1 || images.Manifests[0].Platform.String() != host.String() {
		t.Fatalf("the index has %+v", images.Manifests)
	}
	image, err := index.Image(images.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpack writes the files of the image into a folder, and returns them.
func unpack(t *testing.T, image v1.Image, to string) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	files := map[string][]byte{}
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || header.Uid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s is more than a file that nobody else may write: %+v", header.Name, header)
		}
		files[header.Name] = data
		file := filepath.Join(to, filepath.FromSlash(path.Clean(header.Name)))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, os.FileMode(header.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImageRuns holds that the scheduler runs out of its image as the Deployment runs
// it: with nothing beside it but its configuration, as an account that may write
// nowhere. It is ready, and places a pod.
func TestImageRuns(t *testing.T) {
	t.Parallel()
	image := imageOf(t, made.get(t))
	sb := shared.Get(t)
	client := sb.Client()
	const namespace, profile = "out-of-the-image", "image"
	if err := sandboxtest.MakeNamespace(t.Context(), client, namespace, nil); err != nil {
		t.Fatal(err)
	}
	makeNode(t, client, namespace)
	port, err := sandboxtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(sb.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c := startContainer(t, image, map[string]string{
		"etc/placement-scheduler/kubeconfig": string(kubeconfig),
		"etc/placement-scheduler/config.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
			"clientConnection: {kubeconfig: /etc/placement-scheduler/kubeconfig}\n" +
			"profiles: [{schedulerName: " + profile + ", plugins: {multiPoint: {enabled: [{name: Gang}]}}}]\n",
	}, "--config=/etc/placement-scheduler/config.yaml", "--v=2", fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1")
	c.until("ready", func(ctx context.Context) (bool, string) { return ready(ctx, port) })
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "placed", Namespace: namespace},
		Spec:       corev1.PodSpec{SchedulerName: profile, NodeSelector: map[string]string{"test.example/of": namespace}, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.until("a node for the pod", func(ctx context.Context) (bool, string) {
		got, err := client.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return got.Spec.NodeName == namespace, fmt.Sprint(got.Status.Conditions)
	})
}

func makeNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test.example/of": name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(10, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(4, resource.DecimalSI)}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ready asks what the kubelet would.
func ready(ctx context.Context, port int) (bool, string) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // as the kubelet does not check the certificate
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/readyz", port), nil)
	if err != nil {
		return false, err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, response.Status
}

// container is a program that runs out of an image.
type container struct {
	*testing.T
	log  string
	exit chan struct{}
}

// startContainer unpacks the image, puts files beside it, as a pod's volumes are, and
// runs its entrypoint there, as its account, with the folder for its root. It runs
// until the test is over.
func startContainer(t *testing.T, image v1.Image, files map[string]string, arguments ...string) *container {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	rootfs := t.TempDir()
	unpack(t, image, rootfs)
	for name, text := range files {
		file := filepath.Join(rootfs, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := &container{T: t, log: filepath.Join(t.TempDir(), "log"), exit: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(config.Config.Entrypoint[0], arguments...)
	command.Dir, command.Env, command.Stdout, command.Stderr = "/", []string{}, log, log
	command.SysProcAttr = confined(rootfs)
	if err := command.Start(); err != nil {
		t.Fatalf("start %s out of the image: %v", config.Config.Entrypoint[0], err)
	}
	go func() {
		defer close(c.exit)
		_ = command.Wait() // killed is how it ends
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended by itself
		<-c.exit
	})
	return c
}

// confined returns what makes a folder the root of a process that runs as account. Who
// is not root becomes account in a user namespace.
func confined(rootfs string) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Chroot: rootfs, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: account, Gid: account}
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: account, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: account, HostID: os.Getegid(), Size: 1}}
	return attr
}

// until waits for check, and fails the test with what check and the container said
// last.
func (c *container) until(what string, check func(context.Context) (bool, string)) {
	c.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(c.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (done bool, _ error) {
		select {
		case <-c.exit:
			return false, errors.New("the program has ended")
		default:
		}
		done, last = check(ctx)
		return done, nil
	})
	if err != nil {
		log, _ := os.ReadFile(c.log)
		c.Fatalf("wait for %s: %v; last: %s\n%s", what, err, last, log)
	}
}
