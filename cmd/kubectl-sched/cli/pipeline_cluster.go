package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// namespace is that of manifests that name none. As with kubectl it is
// --namespace, else that of the context, but only where a cluster is asked
// anyway: what compiles from files alone must not depend on whose machine it is.
func (p *pipeline) namespace() string {
	if p.config == nil {
		return ""
	}
	if namespace := p.flagNamespace(); namespace != "" || !p.withCluster {
		return namespace
	}
	return contextNamespace(p.config)
}

// flagNamespace is what --namespace says; empty if it is not given.
func (p *pipeline) flagNamespace() string {
	if p.config == nil || p.config.Namespace == nil {
		return ""
	}
	return *p.config.Namespace
}

// contextNamespace is kubectl's namespace: --namespace, else that of the
// kubeconfig's context, else "default". It is empty if the kubeconfig cannot be
// read, which whoever connects says.
func contextNamespace(config *genericclioptions.ConfigFlags) string {
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// liveWorkloads reads the workloads from the cluster, nil for the current one:
// those in --namespace, else all.
func (p *pipeline) liveWorkloads(ctx context.Context, placement *policy.Placement, c *policy.Cluster) ([]*workload.Workload, diag.Findings) {
	kinds, findings := kindTable(placement)
	if findings.HasErrors() {
		return nil, findings
	}
	if p.snapshot != nil {
		workloads, fs := facts.Workloads(p.snapshot, kinds)
		return p.inNamespace(workloads), append(findings, fs...)
	}
	client, err := p.connect(c)
	if err != nil {
		return nil, unreachable(err)
	}
	scope := cluster.Scope{Kinds: kinds}
	if namespace := cmp.Or(p.explained, p.flagNamespace()); namespace != "" {
		scope.Namespaces = []string{namespace}
	}
	return client.Workloads(ctx, scope)
}

// inNamespace returns the workloads in --namespace, else all.
func (p *pipeline) inNamespace(workloads []*workload.Workload) []*workload.Workload {
	namespace := p.flagNamespace()
	if namespace == "" {
		return workloads
	}
	return slices.DeleteFunc(workloads, func(w *workload.Workload) bool { return w.Namespace != namespace })
}

func unreachable(err error) diag.Findings {
	return diag.Findings{{Rule: "input/cluster", Severity: diag.Error, Message: err.Error()}}
}

// capabilities returns what is known of a cluster: what the document and the
// manifests say and, with withCluster, what the cluster itself does. The cluster
// may be nil.
func (p *pipeline) capabilities(ctx context.Context, c *policy.Cluster) (capability.Capabilities, diag.Findings) {
	var caps capability.Capabilities
	var findings diag.Findings
	switch {
	case p.snapshot != nil:
		caps = facts.Capabilities(p.snapshot)
		findings = p.unknownNamespaces(caps)
	case p.withCluster:
		client, err := p.connect(c)
		if err != nil {
			return caps, unreachable(err)
		}
		caps, findings = client.Capabilities(ctx)
		findings = append(findings, p.unknownNamespaces(caps)...)
	}
	if p.set != nil {
		var fs diag.Findings
		caps, fs = addManifestFacts(caps, p.set.Others)
		findings = append(findings, fs...)
	}
	if c != nil {
		caps.Cluster = c.Name
		if caps.Minor == 0 {
			caps.Minor = minorOf(c.Version)
		}
	}
	return caps, findings
}

// unknownNamespaces says which namespaces the user names that the cluster does
// not have: their workloads, which are none, are not what was meant.
func (p *pipeline) unknownNamespaces(caps capability.Capabilities) diag.Findings {
	named := cmp.Or(p.explained, p.flagNamespace())
	if !p.live || named == "" || !caps.NamespacesKnown {
		return nil
	}
	var findings diag.Findings
	for name := range strings.SplitSeq(named, ",") {
		if _, ok := caps.Namespaces[name]; ok {
			continue
		}
		message := fmt.Sprintf("the cluster has no namespace %q", name)
		if near, ok := diag.Nearest(name, slices.Sorted(maps.Keys(caps.Namespaces))); ok {
			message += fmt.Sprintf("; did you mean %q?", near)
		}
		findings = append(findings, diag.Finding{Rule: "input/namespace", Severity: diag.Error, Message: message})
	}
	return findings
}

// minorOf returns the 37 of "1.37", 0 for an empty version (the schema allows
// no others).
func minorOf(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// connect returns the client for the cluster: the kubeconfig context that the
// user chose with --context, else the one of the clusters block, else the
// current one.
func (p *pipeline) connect(c *policy.Cluster) (*cluster.Client, error) {
	config, name := p.config, ""
	if c != nil && c.Context != "" && (config.Context == nil || *config.Context == "") {
		name = c.Context
		config = withContext(config, name)
	}
	if client := p.clients[name]; client != nil {
		return client, nil
	}
	rest, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := cluster.Connect(rest)
	if err != nil {
		return nil, err
	}
	if p.clients == nil {
		p.clients = map[string]*cluster.Client{}
	}
	p.clients[name] = client
	return client, nil
}

// withContext returns a copy of the flags for another context.
func withContext(config *genericclioptions.ConfigFlags, context string) *genericclioptions.ConfigFlags {
	other := genericclioptions.NewConfigFlags(true)
	other.CacheDir, other.KubeConfig, other.Namespace = config.CacheDir, config.KubeConfig, config.Namespace
	other.ClusterName, other.AuthInfoName, other.APIServer = config.ClusterName, config.AuthInfoName, config.APIServer
	other.TLSServerName, other.Insecure = config.TLSServerName, config.Insecure
	other.CertFile, other.KeyFile, other.CAFile, other.BearerToken = config.CertFile, config.KeyFile, config.CAFile, config.BearerToken
	other.Impersonate, other.ImpersonateUID = config.Impersonate, config.ImpersonateUID
	other.ImpersonateGroup, other.ImpersonateUserExtra = config.ImpersonateGroup, config.ImpersonateUserExtra
	other.Username, other.Password, other.Timeout = config.Username, config.Password, config.Timeout
	other.DisableCompression, other.ProxyURL = config.DisableCompression, config.ProxyURL
	other.WrapConfigFn = config.WrapConfigFn
	other.Context = &context
	return other
}
