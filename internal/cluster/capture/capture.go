// Package capture takes a snapshot of a live cluster.
//
// It lists page by page, and trims each object before it keeps it, so that the
// memory which a capture takes is that of the snapshot and of one page. It only
// reads. It must not know what a snapshot is used for, nor how it is written.
package capture

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/trim"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Options are what a capture depends on besides the cluster.
type Options struct {
	// Name is what the snapshot calls the cluster.
	Name string
	// Kinds is the table of workloads; nil for the built-in one.
	Kinds *workload.Kinds
	// Now is the clock.
	Now func() time.Time
	// Progress hears how far the capture is; nil for nobody. It is called by one at a
	// time.
	Progress func(Progress)
}

// Progress says how far a capture is.
type Progress struct {
	// What is being read, in the plural: "pods".
	What string
	// Read is how many of them have been read, Left how many more the API server
	// expects; 0 where it does not say.
	Read, Left int64
}

// Capture reads from the cluster what scheduling depends on. Kinds that the cluster
// does not serve are left out. Kinds that the user may not list are in Missing, and
// in a Warning; of nodes, pods and namespaces that is an error, as everything else
// that goes wrong is.
func Capture(ctx context.Context, client *cluster.Client, o Options) (*snapshot.Snapshot, diag.Findings, error) {
	if o.Kinds == nil {
		o.Kinds, _ = workload.NewKinds(nil)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	c := &capturer{client: client, o: o, s: &snapshot.Snapshot{Taken: o.Now().UTC().Truncate(time.Second), Cluster: o.Name}}
	if err := c.all(ctx); err != nil {
		return nil, nil, fmt.Errorf("capture a snapshot of %s: %w", client.Host, err)
	}
	c.s.Sort()
	return c.s, append(c.findings, c.missing()...), nil
}

type capturer struct {
	client   *cluster.Client
	o        Options
	s        *snapshot.Snapshot
	keep     trim.Keep
	findings diag.Findings
}

func (c *capturer) all(ctx context.Context) error {
	info, err := c.client.Kube.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for its version: %w", err)
	}
	c.s.Version = info.GitVersion
	// The schedulers come first: their configurations say which annotations are read.
	if err := c.schedulers(ctx); err != nil {
		return err
	}
	c.keep = snapshot.KeepsAnnotation(c.s.Schedulers)
	for _, k := range snapshot.Kinds() {
		if k == snapshot.Custom() {
			err = c.custom(ctx, k)
		} else {
			err = c.kind(ctx, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kind reads all objects of a kind.
func (c *capturer) kind(ctx context.Context, k *snapshot.Kind) error {
	list, served, err := c.lister(k)
	switch {
	case err != nil:
		return c.verdict(k.Resource, k.Group, err)
	case !served && required[k.Resource] && k.Group == "":
		return fmt.Errorf("the API server does not serve %s", k.Resource)
	case !served:
		return nil
	}
	if err := c.serves(ctx, k); err != nil {
		return err
	}
	return c.verdict(k.Resource, k.Group, c.read(ctx, k, k.Name, list))
}

// serves notes that the cluster serves the kind. PodGroups of the API count where it
// keeps the field of pods that names them.
func (c *capturer) serves(ctx context.Context, k *snapshot.Kind) error {
	if !k.Optional() {
		return nil
	}
	if k.Typed && k.Kind == "PodGroup" {
		kept, err := c.client.KeepsGroups(ctx)
		if err != nil {
			return fmt.Errorf("ask whether it keeps the groups of pods: %w", err)
		}
		if !kept {
			return nil
		}
	}
	c.s.Served = append(c.s.Served, k.GroupResource())
	return nil
}

// lister returns how the objects of a kind are listed, and whether the cluster
// serves it: where it does not, an API server that knows no rights to it may refuse
// rather than say so.
func (c *capturer) lister(k *snapshot.Kind) (lister, bool, error) {
	mapping, err := c.client.Resource(k.GroupKind(), k.Version)
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !k.Typed {
		return dynamicList(c.client.Interface(mapping, "")), true, nil
	}
	list, ok := typedLists(c.client.Kube)[k.GroupKind()]
	if !ok {
		return nil, false, fmt.Errorf("there is no way to list %s", k.Name)
	}
	return list, true, nil
}

// custom reads the workloads of other kinds that the table knows and the cluster
// serves.
func (c *capturer) custom(ctx context.Context, custom *snapshot.Kind) error {
	for _, gk := range c.o.Kinds.All() {
		if _, own := snapshot.KindOf(schema.GroupKind(gk)); own {
			continue
		}
		mapping, err := c.client.Resource(schema.GroupKind(gk), "")
		if meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = c.read(ctx, custom, mapping.Resource.GroupResource().String(), dynamicList(c.client.Interface(mapping, "")))
			err = c.verdict(mapping.Resource.Resource, mapping.Resource.Group, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// required are the kinds without which there is nothing to simulate.
var required = map[string]bool{"nodes": true, "pods": true, "namespaces": true}

// verdict decides what an error of listing a resource means: nothing where the
// cluster does not serve it, and a gap in the snapshot where it cannot be read.
func (c *capturer) verdict(resource, group string, err error) error {
	name := schema.GroupResource{Group: group, Resource: resource}.String()
	switch {
	case err == nil:
		return nil
	case required[name]:
		return fmt.Errorf("list %s: %w", name, err)
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsServiceUnavailable(err):
		c.s.Missing = append(c.s.Missing, snapshot.Missing{Resource: name, Reason: cluster.Describe(err)})
		return nil
	}
	return fmt.Errorf("list %s: %w", name, err)
}

// missing says in one Warning what the snapshot does not know.
func (c *capturer) missing() diag.Findings {
	if len(c.s.Missing) == 0 {
		return nil
	}
	var names []string
	for _, m := range c.s.Missing {
		names = append(names, m.Resource)
	}
	return diag.Findings{{
		Rule: "snapshot/missing", Severity: diag.Warning,
		Message: fmt.Sprintf("%s cannot be read, so the snapshot does not know whether there are any; what depends on them is not known either", strings.Join(names, ", ")),
	}}
}
