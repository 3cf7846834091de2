package workload

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// readText reads one text as a file of its own.
func readText(t testing.TB, src string) (*Set, diag.Findings) {
	t.Helper()
	return Read(context.Background(), Input{Files: []string{"-"}, Stdin: strings.NewReader(src)}, Options{})
}

// rewrite carries the edits of all workloads out on the text that they are from.
func rewrite(t testing.TB, set *Set, after func(*Workload) map[int]PodFields) string {
	t.Helper()
	edits := map[int][]yamledit.Edit{}
	for _, w := range set.Workloads {
		out, err := w.Write(after(w), Stamp{})
		if err != nil {
			t.Fatal(err)
		}
		edits[w.Source.Document] = append(edits[w.Source.Document], out.Edits...)
	}
	got, err := yamledit.ApplyAll(set.Files[0].Data, edits, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// place is a placement that touches every field that the templates carry.
func placeAll(w *Workload) map[int]PodFields {
	after := map[int]PodFields{}
	for i, t := range w.Templates {
		p := t.Pods
		has := func(f Field) bool { _, ok := t.Paths[f]; return ok }
		if has(Tolerations) {
			p.Tolerations = append(slices.Clone(p.Tolerations), corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})
		}
		if has(SpreadConstraints) {
			p.TopologySpreadConstraints = append(slices.Clone(p.TopologySpreadConstraints), corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule})
		}
		if has(Affinity) {
			if p.Affinity == nil {
				p.Affinity = &corev1.Affinity{}
			}
			p.Affinity = p.Affinity.DeepCopy()
			if p.Affinity.NodeAffinity == nil {
				p.Affinity.NodeAffinity = &corev1.NodeAffinity{}
			}
			n := p.Affinity.NodeAffinity
			zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "1"}}
			if n.RequiredDuringSchedulingIgnoredDuringExecution == nil {
				n.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
			}
			for j := range n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				term := &n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[j]
				term.MatchExpressions = append(term.MatchExpressions, zone)
			}
			if t.parts == nil || t.parts[PodAntiAffinity] != nil {
				if p.Affinity.PodAntiAffinity == nil {
					p.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
				}
				a := p.Affinity.PodAntiAffinity
				a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.WeightedPodAffinityTerm{Weight: 7, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "host"}})
			}
		}
		if has(PriorityClassName) {
			p.PriorityClassName = "high"
		}
		if has(SchedulerName) {
			p.SchedulerName = "ours"
		}
		if has(NodeSelector) {
			selector := map[string]string{"added.example.com/x": "yes"}
			for k, v := range p.NodeSelector {
				selector[k] = v
			}
			p.NodeSelector = selector
		}
		if has(SchedulingGates) {
			p.SchedulingGates = append(slices.Clone(p.SchedulingGates), corev1.PodSchedulingGate{Name: "gates.kubectl-sched.github.io/x"})
		}
		if has(SchedulingGroup) {
			p.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("train")}
		}
		with := func(m map[string]string, key string) map[string]string {
			out := map[string]string{key: "ours"}
			maps.Copy(out, m)
			return out
		}
		if has(TemplateLabels) {
			p.Labels = with(p.Labels, gangkey.LabelOldest)
		}
		if has(TemplateAnnotations) {
			p.Annotations = with(p.Annotations, args.PodDatasets)
		}
		for _, c := range t.Containers() {
			if len(p.Env[c]) > 0 {
				continue
			}
			env := map[string][]corev1.EnvVar{c: {{Name: args.VisibleDevices, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['x']"}}}}}
			maps.Copy(env, p.Env)
			p.Env = env
		}
		if t.PodSpec != nil {
			p.Raw = map[string]any{"securityContext": map[string]any{"fsGroup": 5}, "hostNetwork": true}
		}
		after[i] = p
	}
	return after
}

func nothing(*Workload) map[int]PodFields { return nil }

// Writing a placement, reading it again and taking it away gives the same bytes;
// writing it twice changes nothing the second time.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.[yj]*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			src := string(data)
			set, findings := readText(t, src)
			if findings.HasErrors() {
				t.Fatal(findings)
			}
			if unchanged := rewrite(t, set, nothing); unchanged != src {
				t.Fatalf("without a policy:\n%s", cmp.Diff(src, unchanged))
			}
			with := rewrite(t, set, placeAll)
			if with == src {
				t.Fatal("nothing was written")
			}
			again, findings := readText(t, with)
			if findings.HasErrors() {
				t.Fatalf("%v\n%s", findings, with)
			}
			for i, w := range again.Workloads {
				for j, template := range w.Templates {
					if diff := cmp.Diff(set.Workloads[i].Templates[j].Pods, template.Pods); diff != "" {
						t.Errorf("%s: without us (-before +after)\n%s", w.Ref(), diff)
					}
				}
			}
			if twice := rewrite(t, again, placeAll); twice != with {
				t.Errorf("the second time:\n%s", cmp.Diff(with, twice))
			}
			if back := rewrite(t, again, nothing); back != src {
				t.Errorf("taken away:\n%s", cmp.Diff(src, back))
			}
		})
	}
}

// Whatever of the placement is written, and however the manifest is cut down to
// what it has, taking it away gives the same bytes.
func TestRoundTripOfSome(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		src := string(data)
		if rapid.Bool().Draw(r, "CRLF") {
			src = strings.ReplaceAll(src, "\n", "\r\n")
		}
		if rapid.Bool().Draw(r, "no last break") {
			src = strings.TrimRight(src, "\r\n")
		}
		set, findings := readText(t, src)
		if findings.HasErrors() {
			r.Fatalf("%v", findings)
		}
		some := func(w *Workload) map[int]PodFields {
			after := placeAll(w)
			for i, p := range after {
				pods := w.Templates[i].Pods
				for n, undo := range []func(){
					func() { p.Tolerations = pods.Tolerations }, func() { p.TopologySpreadConstraints = pods.TopologySpreadConstraints },
					func() { p.Affinity = pods.Affinity }, func() { p.PriorityClassName = pods.PriorityClassName },
					func() { p.SchedulerName = pods.SchedulerName }, func() { p.NodeSelector = pods.NodeSelector }, func() { p.Raw = nil },
					func() { p.SchedulingGates = pods.SchedulingGates }, func() { p.SchedulingGroup = pods.SchedulingGroup },
					func() { p.Labels = pods.Labels }, func() { p.Annotations = pods.Annotations }, func() { p.Env = pods.Env },
				} {
					if rapid.Bool().Draw(r, "undo") {
						undo()
					}
					_ = n
				}
				after[i] = p
			}
			return after
		}
		first := rewrite(t, set, some)
		again, _ := readText(t, first)
		second := rewrite(t, again, some)
		last, findings := readText(t, second)
		if findings.HasErrors() {
			r.Fatalf("%v\n%s", findings, second)
		}
		if back := rewrite(t, last, nothing); back != src {
			r.Fatalf("taken away:\n%s", cmp.Diff(src, back))
		}
	})
}
