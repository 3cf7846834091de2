package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// defaultPolicyFolder is where policies are looked for if nothing is said.
const defaultPolicyFolder = "placement"

// The limits of one evaluation of policies. They are far above what honest
// documents need (a thousand policies take a second and 300 MiB).
const (
	defaultLoadTimeout = 30 * time.Second
	defaultLoadMemory  = "1Gi"

	defaultLoadMemoryBytes = 1 << 30
)

// policyFlags say which policies to read, and within which limits.
type policyFlags struct {
	paths         []string
	timeout       time.Duration
	memory        string
	allowRegistry bool
}

func (f *policyFlags) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&f.paths, "policy", "p", nil, "Folders or .cue files with policies; ./"+defaultPolicyFolder+" if it exists, else the working directory")
	flags.DurationVar(&f.timeout, "load-timeout", defaultLoadTimeout, "How long evaluating the policies may take")
	flags.StringVar(&f.memory, "load-memory", defaultLoadMemory, "How much memory evaluating the policies may take")
	flags.BoolVar(&f.allowRegistry, "allow-registry", false, "Fetch CUE modules that the policies import from a registry; otherwise nothing is fetched")
}

// policyOptions are policyFlags with the defaults filled in.
type policyOptions struct {
	paths         []string
	timeout       time.Duration
	memory        int64 // bytes
	allowRegistry bool
	replace       map[string][]byte // texts in the place of files
}

// defaultPolicies are the policies in a folder, with the usual limits.
func defaultPolicies(folder string) policyOptions {
	return policyOptions{paths: []string{folder}, timeout: defaultLoadTimeout, memory: defaultLoadMemoryBytes}
}

func (f *policyFlags) toOptions(a *app) (policyOptions, error) {
	memory, err := bytesFlag("load-memory", f.memory)
	if err != nil {
		return policyOptions{}, err
	}
	if f.timeout <= 0 {
		return policyOptions{}, fmt.Errorf("--load-timeout must be above 0, not %s", f.timeout)
	}
	o := policyOptions{paths: f.paths, timeout: f.timeout, memory: memory, allowRegistry: f.allowRegistry}
	if len(o.paths) == 0 {
		o.paths = []string{a.defaultPolicyPath()}
	}
	return o, nil
}

// defaultPolicyPath is the conventional folder if it is there, else ".".
func (a *app) defaultPolicyPath() string {
	dir, err := a.getwd()
	if err != nil {
		return "."
	}
	if info, err := os.Stat(filepath.Join(dir, defaultPolicyFolder)); err == nil && info.IsDir() {
		return defaultPolicyFolder
	}
	return "."
}

// defaultMaxFileSize is what --max-file-size is if nothing is said.
var defaultMaxFileSize = resource.NewQuantity(workload.DefaultMaxFileSize, resource.BinarySI).String()

// manifestFlags say which manifests to read, as kubectl's flags of that name.
type manifestFlags struct {
	files       []string
	recursive   bool
	kustomize   string
	maxFileSize string
}

func (f *manifestFlags) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "Files or folders with manifests; \"-\" is standard input")
	flags.BoolVarP(&f.recursive, "recursive", "R", false, "Read the folders given with -f recursively")
	flags.StringVarP(&f.kustomize, "kustomize", "k", "", "Folder of a kustomization to build and read")
	flags.StringVar(&f.maxFileSize, "max-file-size", defaultMaxFileSize, "How large one file of manifests may be")
}

// manifestOptions are resolved manifestFlags.
type manifestOptions struct {
	input       workload.Input
	maxFileSize int64 // bytes
}

func (f *manifestFlags) toOptions(a *app) (manifestOptions, error) {
	size, err := bytesFlag("max-file-size", f.maxFileSize)
	if err != nil {
		return manifestOptions{}, err
	}
	if len(f.files) > 0 && f.kustomize != "" {
		return manifestOptions{}, fmt.Errorf("give -f or -k, not both")
	}
	if f.recursive && len(f.files) == 0 {
		return manifestOptions{}, fmt.Errorf("-R needs -f")
	}
	return manifestOptions{
		input:       workload.Input{Files: f.files, Recursive: f.recursive, Kustomize: f.kustomize, Stdin: a.In},
		maxFileSize: size,
	}, nil
}

// given reports whether there are manifests to read.
func (o manifestOptions) given() bool { return len(o.input.Files) > 0 || o.input.Kustomize != "" }

// clusterFlags say for which cluster to compile, and what to ask of a live one.
type clusterFlags struct {
	name        string
	live        bool
	withCluster bool
	config      *genericclioptions.ConfigFlags
}

// newClusterFlags returns the flags with kubectl's own for reaching a cluster.
func newClusterFlags(a *app) clusterFlags { return clusterFlags{config: a.newConfigFlags()} }

// newConfigFlags returns kubectl's flags for reaching a cluster. kubectl's
// --cluster, which names a cluster of the kubeconfig, is left out: here it names
// a cluster of the policies (--context says the rest).
func (a *app) newConfigFlags() *genericclioptions.ConfigFlags {
	config := genericclioptions.NewConfigFlags(true).
		WithDiscoveryBurst(300).
		WithDiscoveryQPS(50).
		WithWarningPrinter(a.IOStreams)
	config.ClusterName = nil
	return config
}

// addTo adds --cluster and kubectl's flags.
func (f *clusterFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "cluster", "", "Cluster of the policies' clusters block to compile for, or \"all\"")
	f.config.AddFlags(flags)
}

// addReading adds the flags that read a live cluster.
func (f *clusterFlags) addReading(flags *pflag.FlagSet) {
	flags.BoolVar(&f.live, "live", false, "Read the workloads from the cluster instead of manifests")
	flags.BoolVar(&f.withCluster, "with-cluster", false, "Read nodes, namespaces, volumes and priority classes from the cluster, and check against them")
}

// bytesFlag reads a number of bytes as Kubernetes writes it ("512Mi").
func bytesFlag(name, value string) (int64, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("--%s must be a number of bytes such as \"512Mi\", not %q", name, value)
	}
	return q.Value(), nil
}
