package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/facts"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/baseline"
	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/internal/preview"
	"github.com/kubectl-sched/kubectl-sched/internal/review"
	"github.com/kubectl-sched/kubectl-sched/internal/simulate"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// review compares the sides. broken says that the head does not compile.
func (o *reviewOptions) review(ctx context.Context, base, head *side) (r *review.Review, broken bool, err error) {
	if err := o.named(base, head); err != nil {
		return nil, false, err
	}
	r = &review.Review{Base: base.name, Head: head.name}
	for _, s := range []*side{base, head} {
		s.load(ctx)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
	clusters, err := o.clusters(base, head)
	if err != nil {
		return nil, false, err
	}
	snapshots, err := o.readSnapshots(clusters)
	if err != nil {
		return nil, false, err
	}
	type pair struct {
		name       string
		base, head review.Compilation
	}
	var pairs []pair
	for _, name := range clusters {
		p := pair{name: name}
		var compiled [2]bool
		p.base, compiled[0] = base.compile(ctx, clusterOf(name, base, head), snapshots[name])
		p.head, compiled[1] = head.compile(ctx, clusterOf(name, head, base), snapshots[name])
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if compiled[0] && compiled[1] {
			pairs = append(pairs, p)
		}
	}
	if err := o.findings(ctx, r, base, head); err != nil {
		return nil, false, err
	}
	places := review.Places{Base: base.at, Head: head.at}
	switch {
	case head.broken():
		r.Problem = "The head does not compile, so that nothing else can be said of it."
		return r, true, nil
	case base.broken():
		r.Problem = "The base does not compile, so that there is nothing to compare the head with; the head does."
		return r, false, nil
	}
	if r.Policies, err = review.Declarations(base.placement, head.placement, places); err != nil {
		return nil, false, err
	}
	var sections []review.Section
	for _, p := range pairs {
		s, err := o.section(ctx, base, head, p.base, p.head, snapshots[p.name], places)
		if err != nil {
			return nil, false, err
		}
		if p.name != "" {
			s.Clusters = []string{p.name}
		}
		sections = append(sections, s)
	}
	r.Sections = review.Join(sections)
	return r, false, nil
}

// named holds that each path that the user names is there on one side at least.
func (o *reviewOptions) named(base, head *side) error {
	before := slices.Concat(base.pipeline.policies.paths, base.pipeline.manifests.input.Files)
	after := slices.Concat(head.pipeline.policies.paths, head.pipeline.manifests.input.Files)
	for i := range before {
		if !there(before[i]) && !there(after[i]) && base.refused[base.rel(before[i])]+head.refused[head.rel(after[i])] == "" {
			return usageError{fmt.Errorf("neither %s nor %s has %s", base.name, head.name, head.rel(after[i]))}
		}
	}
	return nil
}

// clusterOf returns the cluster of that name as the side has it, else the other; nil
// for the nameless.
func clusterOf(name string, s, other *side) *policy.Cluster {
	if c := s.placement.Cluster(name); c != nil {
		return c
	}
	return other.placement.Cluster(name)
}

// clusters returns the names of the clusters to review, "" for a nameless one.
func (o *reviewOptions) clusters(base, head *side) ([]string, error) {
	var names []string
	for _, s := range []*side{head, base} {
		for _, c := range s.placement.Clusters {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	switch want := o.flags.cluster; {
	case want == "" || want == allClusters:
		if len(names) == 0 {
			return []string{""}, nil
		}
		return names, nil
	case len(names) == 0:
		return nil, usageError{fmt.Errorf("--cluster %q: the policies have no clusters block", want)}
	case !slices.Contains(names, want):
		return nil, usageError{fmt.Errorf("--cluster %q: there is no such cluster; %s", want, didYouMean(want, append(names, allClusters)))}
	default:
		return []string{want}, nil
	}
}

// readSnapshots reads the snapshots, by the names of their clusters.
func (o *reviewOptions) readSnapshots(clusters []string) (map[string]*snapshot.Snapshot, error) {
	out := map[string]*snapshot.Snapshot{}
	for _, said := range o.flags.snapshots {
		cluster, file, named := strings.Cut(said, "=")
		if !named || !slices.Contains(clusters, cluster) {
			if named && !there(said) && clusters[0] == "" {
				return nil, usageError{fmt.Errorf("--snapshot %s: the policies have no clusters block, so there is no cluster %q; name the file alone", said, cluster)}
			}
			if named && !there(said) {
				return nil, usageError{fmt.Errorf("--snapshot %s: %q is no cluster that is reviewed; %s", said, cluster, didYouMean(cluster, clusters))}
			}
			cluster, file = clusters[0], said
			if len(clusters) > 1 {
				return nil, usageError{fmt.Errorf("--snapshot %s: the policies speak of several clusters; say of which it is, as --snapshot %s=%s, or name one with --cluster", said, cluster, said)}
			}
		}
		if out[cluster] != nil {
			return nil, usageError{fmt.Errorf("--snapshot %s: there is one of that cluster already", said)}
		}
		if leadsOut(o.repository, o.dir, file) {
			return nil, usageError{fmt.Errorf("--snapshot %s: it is a symbolic link out of the repository; name the file that is meant", file)}
		}
		s, err := readSnapshotOf(file, snapshot.Limits{Bytes: o.maxBytes, Text: min(o.maxBytes, maxSnapshotText)})
		if err != nil {
			return nil, err
		}
		if err := s.CheckAge(o.app.now(), o.flags.maxAge); err != nil {
			return nil, err
		}
		if o.flags.namesFile != "" {
			_, options, err := o.flags.of(o.app, s)
			if err != nil {
				return nil, err
			}
			o.said = options.Names
		}
		out[cluster] = s
	}
	return out, nil
}

// findings fills in the findings that the base does not have. What becomes of findings
// is said by the settings of the base.
func (o *reviewOptions) findings(ctx context.Context, r *review.Review, base, head *side) error {
	triage, problems, err := o.flags.triageFlags.toOptions(base.app)
	if err != nil {
		return usageError{err}
	}
	base.findings = append(base.findings, problems...)
	var lists, hidden [2]diag.Findings
	var prints, hiddenPrints [2][]fingerprint.Print
	var names func(string) string
	var ignored []diag.Ignored
	for i, s := range []*side{base, head} {
		p := s.pipeline
		p.complete = !s.broken()
		if p.live || p.manifests.given() {
			s.findings = append(s.findings, unmatched(s.placement, s.all, p.extentOf())...)
		}
		t := *triage
		t.app = s.app
		found, err := t.sort(ctx, p, s.findings.Sort())
		if err != nil {
			return err
		}
		options := s.app.reportOptions(o.app.Out)
		lists[i] = slices.DeleteFunc(found.findings, func(f diag.Finding) bool { return f.Rule == baseline.Gone })
		sources := fingerprint.Sources{Name: options.Name, Read: options.Source}
		prints[i], names = fingerprint.Of(lists[i], sources), options.Name
		for _, f := range found.ignored {
			hidden[i] = append(hidden[i], f.Finding)
		}
		hiddenPrints[i], ignored = fingerprint.Of(hidden[i], sources), found.ignored
	}
	known := baseline.New(lists[0], prints[0], names)
	var old int
	r.Findings, old = known.Apply(lists[1], prints[1], func(baseline.Entry) bool { return false })
	// What is ignored now is not mended.
	_, still := baseline.New(lists[0], prints[0], names).Apply(slices.Concat(lists[1], hidden[1]), slices.Concat(prints[1], hiddenPrints[1]), func(baseline.Entry) bool { return false })
	r.Mended = len(lists[0]) - max(old, still)
	fresh, _ := baseline.New(hidden[0], hiddenPrints[0], names).Apply(hidden[1], hiddenPrints[1], func(baseline.Entry) bool { return false })
	r.Ignored = newlyIgnored(ignored, fresh)
	if head.broken() {
		// What stops the head is said, whether or not it stopped the base too.
		r.Findings = slices.DeleteFunc(lists[1], func(f diag.Finding) bool { return !fatal()(f) })
	}
	var said []*diag.Finding
	for i := range r.Findings {
		said = append(said, &r.Findings[i])
	}
	for i := range r.Ignored {
		said = append(said, &r.Ignored[i].Finding)
	}
	for _, f := range said {
		f.Message, f.Subject = head.strip(f.Message), head.strip(f.Subject)
		for j := range f.Related {
			f.Related[j].Message = head.strip(f.Related[j].Message)
		}
	}
	return nil
}

// newlyIgnored returns those of the ignored findings that are among the fresh ones.
func newlyIgnored(ignored []diag.Ignored, fresh diag.Findings) []diag.Ignored {
	var out []diag.Ignored
	for _, i := range ignored {
		at := slices.IndexFunc(fresh, func(f diag.Finding) bool {
			return f.Rule == i.Finding.Rule && f.Range == i.Finding.Range && f.Message == i.Finding.Message && f.Subject == i.Finding.Subject
		})
		if at >= 0 {
			fresh = slices.Delete(fresh, at, at+1)
			out = append(out, i)
		}
	}
	return out
}

// section compares one cluster.
func (o *reviewOptions) section(ctx context.Context, base, head *side, b, h review.Compilation, s *snapshot.Snapshot, places review.Places) (review.Section, error) {
	var budgets []*policyv1.PodDisruptionBudget
	if s != nil {
		budgets = s.PodDisruptionBudgets
	}
	out, moves, err := review.Compare(ctx, b, h, budgets, places)
	if err != nil || !moves {
		return out, err
	}
	if s == nil {
		out.Unknown = true
		return out, nil
	}
	steps, left, err := goes(head, out.Workloads, s)
	if err != nil {
		return out, err
	}
	var before, after review.Simulated
	both, ctx := errgroup.WithContext(ctx)
	if len(s.Pods) > mostPodsAtOnce {
		both.SetLimit(1)
	}
	both.Go(func() (err error) {
		if before, err = o.simulate(ctx, base, b, s, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", base.name, err)
		}
		return nil
	})
	both.Go(func() (err error) {
		bar := o.app.newSimulationBar()
		defer bar.end()
		if after, err = o.simulate(ctx, head, h, s, steps, bar.hear); err != nil {
			return fmt.Errorf("%s: %w", head.name, err)
		}
		return nil
	})
	if err := both.Wait(); err != nil {
		return out, err
	}
	out.Placement = review.Placements(before, after, places)
	out.Placement.Assumptions = append(out.Placement.Assumptions, left...)
	if slices.ContainsFunc(head.all, func(p clusterPlan) bool { return p.Surface == policy.SurfaceAdmission }) {
		out.Placement.Assumptions = append(out.Placement.Assumptions, "policies of the admission surface reach pods that are made anew; workloads are rolled out here as if all were")
	}
	out.Restarts.Count(before)
	return out, nil
}

// What a review holds in memory: both sides at once, unless there are more pods, and
// of a snapshot in YAML so many bytes.
const (
	mostPodsAtOnce  = 20_000
	maxSnapshotText = 256 << 20
)

// simulate has the snapshot become what the side says, and tells hear how far that is.
func (o *reviewOptions) simulate(ctx context.Context, s *side, c review.Compilation, from *snapshot.Snapshot, steps []simulate.Step, hear func(simulate.Progress)) (review.Simulated, error) {
	pools := &poolMap{of: preview.Pools{}}
	pools.read(s.placement, from)
	result, findings, err := preview.Run(ctx, preview.Request{
		Snapshot: from, Plan: c.Plan, Workloads: c.Workloads, Steps: steps, Pools: pools.elastic(from), Seed: o.flags.seed, Ties: true, Hear: hear,
	})
	switch {
	case err != nil:
		return review.Simulated{}, err
	case result == nil:
		return review.Simulated{}, findings
	}
	return review.Simulated{Result: result, Pools: pools.of}, nil
}

// goes returns the steps that take away the workloads which the head does not have any
// more, and what cannot be taken away.
func goes(head *side, list []review.Workload, s *snapshot.Snapshot) (steps []simulate.Step, left []string, err error) {
	kinds, findings := kindTable(head.placement)
	if findings.HasErrors() {
		return nil, nil, findings
	}
	there, _ := facts.Workloads(s, kinds)
	for _, w := range list {
		if w.Action != review.Removed {
			continue
		}
		for _, known := range there {
			if known.Ref() != w.Name {
				continue
			}
			if _, scales := kindNames[strings.ToLower(known.Kind)]; !scales {
				left = append(left, w.Name+" is gone from the manifests, and its pods are still there")
				continue
			}
			steps = append(steps, simulate.Scale{Workload: simulate.Ref{Kind: known.Kind, Namespace: known.Namespace, Name: known.Name}})
		}
	}
	return steps, left, nil
}
