package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/install"
	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/deploy"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates/condition"
)

// installedConfig has a profile with all of the plugins.
const installedConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: installed
  plugins: {multiPoint: {enabled: [{name: Gang}, {name: CacheLocality, weight: 10}, {name: GPUMemory}]}}
  pluginConfig: [{name: Gang, args: {timeout: 20s}}]
`

// TestInstalled holds that the account that is installed has the rights that the
// scheduler needs, and not those of an administrator: the command runs with its
// token on the configuration as it is deployed, and places a gang whose members
// wait at a gate for each other and take GPU memory.
func TestInstalled(t *testing.T) {
	t.Parallel()
	eachPlane(t, func(t *testing.T, p *plane) {
		l := newLab(t, p, 0)
		for i := range 3 {
			l.node(i, map[string]string{"nvidia.com/gpu.memory": "24576", "nvidia.com/gpu.count": "1"})
		}
		scheduler := l.install()
		text, err := condition.Encode(&condition.Condition{Peers: &condition.Peers{Selector: "scheduling.x-k8s.io/pod-group=train", Min: 2}})
		if err != nil {
			t.Fatal(err)
		}
		l.podGroup("train", 3)
		for i := range 3 {
			const gate = condition.Prefix + "others"
			pod := l.member("train", i)
			pod.Spec.SchedulerName = "installed"
			pod.Annotations = map[string]string{gate: text, args.PodGPUMemory: "12Gi"}
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
			l.create(pod)
		}
		l.untilBound("train", 3)
		for _, pod := range l.pods("train") {
			if pod.Annotations[args.PodGPUIndex] != "0" {
				t.Errorf("pod %s has the annotations %v", pod.Name, pod.Annotations)
			}
		}
		scheduler.stop(t)
		log, err := os.ReadFile(scheduler.log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(log), "\n") {
			// Gates are opened whatever the namespace: another test of this plane lets a
			// pod wait for a ConfigMap, which the account is not to read.
			if strings.Contains(line, `cannot list resource "configmaps"`) {
				continue
			}
			if strings.Contains(line, "forbidden") || strings.Contains(line, "is not allowed") {
				t.Errorf("a right is missing: %s", line)
			}
		}
	})
}

// installed is a scheduler that runs as its account.
type installed struct {
	command *exec.Cmd
	log     string
	ended   bool
}

// stop ends the scheduler as the kubelet does, and waits for it.
func (s *installed) stop(t *testing.T) {
	t.Helper()
	if s.ended {
		return
	}
	s.ended = true
	if err := s.command.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.command.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		_ = s.command.Process.Kill()
		t.Error("the scheduler does not end when it is told to")
	}
}

// install writes the objects of the scheduler, and runs it with what they give to
// its pods. It returns when it leads.
func (l *lab) install() *installed {
	l.Helper()
	ctx := l.Context()
	config, profiles, err := deploy.Configured([]byte(installedConfig), "")
	if err != nil {
		l.Fatal(err)
	}
	objects, err := deploy.Render(deploy.Options{Image: "example.com/scheduler:v1", Config: config, Profiles: profiles})
	if err != nil {
		l.Fatal(err)
	}
	client, err := cluster.Connect(l.sandbox.RESTConfig())
	if err != nil {
		l.Fatal(err)
	}
	writer := &install.Writer{Client: client}
	l.Cleanup(func() {
		ctx, cancel := afterwards()
		defer cancel()
		if err := writer.Remove(ctx); err != nil {
			l.Error(err)
		}
	})
	if err := writer.Write(ctx, objects); err != nil {
		l.Fatal(err)
	}
	dir := l.TempDir()
	kubeconfig := l.kubeconfigOf(ctx, dir)
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		l.Fatal(err)
	}
	mounted := l.mounted(ctx, objects) + fmt.Sprintf("clientConnection: {kubeconfig: %q}\n", kubeconfig)
	s := &installed{log: filepath.Join(dir, "installed.log")}
	if s.command, err = startProcess(binary, dir, "installed", mounted); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		s.stop(l.T)
		if data, err := os.ReadFile(s.log); l.Failed() && err == nil {
			l.Logf("%s", tail(string(data), 60))
		}
	})
	l.until("the installed scheduler leads", func(ctx context.Context) (bool, string) {
		lease, err := l.client.CoordinationV1().Leases(deploy.DefaultNamespace).Get(ctx, deploy.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", ""
	})
	return s
}

// mounted returns the configuration as the pods see it: of the ConfigMap that they
// mount, as it is in the cluster.
func (l *lab) mounted(ctx context.Context, objects []*unstructured.Unstructured) string {
	l.Helper()
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" {
			config, err := l.client.CoreV1().ConfigMaps(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				l.Fatal(err)
			}
			return config.Data[deploy.ConfigKey]
		}
	}
	l.Fatal("nothing is mounted")
	return ""
}

// kubeconfigOf writes a kubeconfig with a token of the scheduler's account.
func (l *lab) kubeconfigOf(ctx context.Context, dir string) string {
	l.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	token, err := l.client.CoreV1().ServiceAccounts(deploy.DefaultNamespace).CreateToken(ctx, deploy.Name, request, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	admin := l.sandbox.RESTConfig()
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		l.Fatal(err)
	}
	return path
}
