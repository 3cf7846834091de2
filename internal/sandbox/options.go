package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Part names one process of the control plane. The binary sched-sandbox, given
// a Part as its first argument, is that program.
type Part string

// The parts, in the order in which they are started.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
	Kwok              Part = "kwok"
)

// Parts returns all parts in the order in which they are started.
func Parts() []Part { return []Part{Etcd, APIServer, ControllerManager, Scheduler, Kwok} }

// ParsePart returns the Part called name; its error lists the names there are.
func ParsePart(name string) (Part, error) {
	if slices.Contains(Parts(), Part(name)) {
		return Part(name), nil
	}
	names := make([]string, 0, len(Parts()))
	for _, p := range Parts() {
		names = append(names, string(p))
	}
	return "", fmt.Errorf("no part is called %q; the parts are %s", name, strings.Join(names, ", "))
}

// Options says what control plane to start. The zero Options is a good one: an
// empty cluster with upstream's defaults, in a temporary folder.
type Options struct {
	// Name is the name of the cluster in the kubeconfig and in messages; empty
	// means "sandbox".
	Name string
	// DataDir is the folder for certificates, configuration, data and logs. It
	// must be absent, empty, or the folder of a sandbox that runs no longer,
	// whose objects are then there again. Empty means a temporary folder, which
	// Stop removes.
	DataDir string
	// Port is the API server's port on 127.0.0.1; 0 chooses a free one.
	Port int
	// FeatureGates are set on the API server, the controller manager and the
	// scheduler ("GenericWorkload": true). Each must be known to all three.
	FeatureGates map[string]bool
	// RuntimeConfig switches API groups and versions on and off, as
	// kube-apiserver --runtime-config does
	// ("scheduling.k8s.io/v1alpha3": "true").
	RuntimeConfig map[string]string
	// SchedulerConfig is a file with a KubeSchedulerConfiguration (v1), or
	// empty for upstream's defaults. The sandbox replaces clientConnection and
	// leaderElection in it.
	SchedulerConfig string
	// SchedulerBinary is a program that takes kube-scheduler's flags and runs in
	// its place (a scheduler with plugins of its own), or empty for upstream's.
	SchedulerBinary string
	// ServiceClusterIPRange is the network of Services; empty means 10.96.0.0/16.
	ServiceClusterIPRange string
	// Fsync makes etcd write through to the disk, as every real cluster's does: a
	// write then takes as long as the disk takes. Without it data outlives a part
	// that is killed, not a machine that loses power.
	Fsync bool
	// QPS and Burst limit what the controller manager and the scheduler each ask
	// of the API server, in requests a second; 0 means 500 and 1000, far above
	// upstream's defaults, so that tests do not wait.
	QPS   float32
	Burst int
	// ExtraArgs are appended to a part's command line, and so win over what the
	// sandbox sets. etcd takes none.
	ExtraArgs map[Part][]string
	// StartTimeout limits how long Start waits for readiness; 0 means 2 minutes.
	StartTimeout time.Duration
	// OnFailure, if set, is called when a part ends after the start that nobody
	// killed, with the end of its log in the error. The sandbox goes on without
	// the part; StartPart brings it back.
	OnFailure func(Part, error)
	// Binary is the path of the sched-sandbox binary; empty calls Binary, which
	// builds it when needed.
	Binary string
}

// withDefaults returns o with every empty field filled, save DataDir and Binary.
func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "sandbox"
	}
	if o.ServiceClusterIPRange == "" {
		o.ServiceClusterIPRange = "10.96.0.0/16"
	}
	if o.QPS == 0 {
		o.QPS = 500
	}
	if o.Burst == 0 {
		o.Burst = 1000
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	return o
}

// featureGates returns the value of --feature-gates, or "".
func (o Options) featureGates() string {
	var pairs []string
	for _, gate := range slices.Sorted(maps.Keys(o.FeatureGates)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", gate, o.FeatureGates[gate]))
	}
	return strings.Join(pairs, ",")
}

// runtimeConfig returns the value of --runtime-config, or "".
func (o Options) runtimeConfig() string {
	var pairs []string
	for _, api := range slices.Sorted(maps.Keys(o.RuntimeConfig)) {
		pairs = append(pairs, api+"="+o.RuntimeConfig[api])
	}
	return strings.Join(pairs, ",")
}
