package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"
)

// scheduler runs the scheduler that is installed as a kubelet would, with its account and
// what its pods mount, until the returned function is called.
func (l *ladder) scheduler() (stop func()) {
	l.Helper()
	binary, err := sandboxtest.SchedulerBinary()
	if err != nil {
		l.Fatal(err)
	}
	deployment, err := l.kube.AppsV1().Deployments("placement-system").Get(l.Context(), "placement-scheduler", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	config := ""
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		mounted, err := l.kube.CoreV1().ConfigMaps("placement-system").Get(l.Context(), v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			l.Fatal(err)
		}
		for _, text := range mounted.Data {
			config += text
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	account := deployment.Spec.Template.Spec.ServiceAccountName
	token, err := l.kube.CoreV1().ServiceAccounts("placement-system").CreateToken(l.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	admin := l.world.RESTConfig()
	kubeconfig := filepath.Join(l.bin, "scheduler.kubeconfig")
	own := &rest.Config{Host: admin.Host, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}}
	if err := writeKubeconfig(kubeconfig, own, "default"); err != nil {
		l.Fatal(err)
	}
	file := filepath.Join(l.bin, "scheduler.yaml")
	l.write(file, config+fmt.Sprintf("\nclientConnection: {kubeconfig: %q}\n", kubeconfig))
	var log bytes.Buffer
	command := exec.Command(binary, "--config="+file, "--secure-port=0")
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		l.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return func() {
		l.Helper()
		if err := command.Process.Signal(os.Interrupt); err != nil {
			l.Errorf("the scheduler has ended: %v\n%s", err, log.String())
		}
		select {
		case <-ended:
		case <-time.After(patience):
			_ = command.Process.Kill()
			l.Error("the scheduler does not end when it is told to")
		}
		if l.Failed() {
			lines := strings.Split(log.String(), "\n")
			l.Log(strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	}
}
