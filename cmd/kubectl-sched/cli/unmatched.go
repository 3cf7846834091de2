package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/policy"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// extent is how much of all workloads there are was read: what a policy that
// selects none of them is judged by.
type extent struct {
	// part says that there may be others, as where single files were given.
	part bool
	// namespaces are the only ones that were read; nil for all.
	namespaces []string
}

// extentOf returns how much the pipeline reads.
func (p *pipeline) extentOf() extent {
	if p.live {
		if p.explained != "" {
			return extent{part: true}
		}
		if ns := p.flagNamespace(); ns != "" {
			return extent{namespaces: strings.Split(ns, ",")}
		}
		return extent{}
	}
	return extent{part: p.manifests.input.Kustomize == "" && slices.ContainsFunc(p.manifests.input.Files, isSingle)}
}

// isSingle reports whether the argument of -f is one file, or standard input, and
// so probably not all there is.
func isSingle(path string) bool {
	if path == "-" || strings.Contains(path, "://") {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// unmatched warns of the policies that match no workload in any cluster, as far
// as what was read lets that be judged. It says nothing if the plans are not for
// all clusters of the placement: what selects nothing here may be for another
// one.
func unmatched(placement *policy.Placement, plans []clusterPlan, read extent) diag.Findings {
	for _, c := range placement.Clusters {
		planned := func(p clusterPlan) bool { return p.Plan.Cluster == c.Name || slices.Contains(p.Clusters, c.Name) }
		if !slices.ContainsFunc(plans, planned) {
			return nil
		}
	}
	var workloads []*workload.Workload
	for _, p := range plans {
		workloads = append(workloads, p.Workloads...)
	}
	var findings diag.Findings
	for _, pol := range placement.Policies {
		holds := func(c clusterPlan) bool { return slices.Contains(c.Plan.Policies, pol.Name) }
		matched := func(c clusterPlan) bool { return holds(c) && !slices.Contains(c.Plan.Unmatched, pol.Name) }
		// One that holds nowhere is the loader's to report.
		if !slices.ContainsFunc(plans, holds) || slices.ContainsFunc(plans, matched) {
			continue
		}
		meant, at := meantWorkload(pol.Workloads, workloads)
		f := diag.Finding{Rule: "policy/unmatched", Severity: diag.Warning, Policy: pol.Name, Range: pol.Positions.At("workloads")}
		switch {
		case meant != "":
			f.Range = pol.Positions.At("workloads", "names", fmt.Sprint(at))
			f.Message = fmt.Sprintf("selects no workload; there is none of the name %q: did you mean %q?", pol.Workloads.Names[at], meant)
		case read.covers(pol.Workloads):
			f.Message = "selects no workload; mend the selector, or remove the policy if it is no longer needed"
		default:
			// What it selects may be among what was not read.
			continue
		}
		findings = append(findings, f)
	}
	return findings
}

// covers reports whether all that the selector can select was read.
func (e extent) covers(s policy.Workloads) bool {
	if e.part {
		return false
	}
	if e.namespaces == nil {
		return true
	}
	return len(s.Namespaces) > 0 && !slices.ContainsFunc(s.Namespaces, func(ns string) bool {
		return isGlob(ns) || !slices.Contains(e.namespaces, ns)
	})
}

// meantWorkload returns the name of the workload that one of the selector's names
// was most likely meant to be, and the index of that name; empty for none.
func meantWorkload(s policy.Workloads, workloads []*workload.Workload) (meant string, at int) {
	var names []string
	for _, w := range workloads {
		if len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, w.Namespace) {
			names = append(names, w.Name)
		}
	}
	for i, name := range s.Names {
		if isGlob(name) || slices.Contains(names, name) {
			continue
		}
		if near, ok := diag.Nearest(name, names); ok {
			return near, i
		}
	}
	return "", 0
}

func isGlob(text string) bool { return strings.ContainsAny(text, `*?[\`) }
