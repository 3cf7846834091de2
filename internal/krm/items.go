package krm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/compiler/emit"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamledit"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// items are the workloads among the items of a ResourceList.
type items struct {
	workloads []*workload.Workload
	// index has the place of each workload among the items.
	index []int
	// origins says of each workload, by its Ref, what and where it is.
	origins map[string]origin
}

type origin struct {
	ref  yaml.ResourceIdentifier
	file framework.File
}

// readItems finds the workloads.
func readItems(nodes []*yaml.RNode, options workload.Options) (*items, diag.Findings) {
	read := &items{origins: map[string]origin{}}
	var findings diag.Findings
	for i, node := range nodes {
		file := fileOf(node)
		text, err := node.MarshalJSON()
		var object map[string]any
		if err == nil {
			err = json.Unmarshal(text, &object)
		}
		if err != nil {
			findings = append(findings, diag.Finding{
				Rule: "input/item", Severity: diag.Error, Range: diag.At(diag.Pos{File: file.Path}),
				Message: fmt.Sprintf("item %d of the list is no object: %v", i+1, err),
			})
			continue
		}
		w, fs, ok := workload.FromObject(object, options, workload.Source{
			File: file.Path, Document: i, Locate: func(workload.Path) diag.Range { return diag.At(diag.Pos{File: file.Path}) },
		})
		findings = append(findings, fs...)
		if !ok {
			continue
		}
		read.workloads, read.index = append(read.workloads, w), append(read.index, i)
		read.origins[w.Ref()] = origin{ref: identify(w), file: file}
	}
	return read, findings
}

// fileOf returns the file that an item came from, as its annotations say.
func fileOf(node *yaml.RNode) framework.File {
	path, index, err := kioutil.GetFileAnnotations(node)
	if err != nil {
		return framework.File{}
	}
	n, err := strconv.Atoi(index)
	if err != nil {
		n = 0
	}
	return framework.File{Path: path, Index: n}
}

func identify(w *workload.Workload) yaml.ResourceIdentifier {
	return yaml.ResourceIdentifier{
		TypeMeta: yaml.TypeMeta{APIVersion: strings.TrimPrefix(w.Group+"/"+w.Version, "/"), Kind: w.Kind},
		NameMeta: yaml.NameMeta{Name: w.Name, Namespace: w.Namespace},
	}
}

// edit returns the items with what is written in them. Comments stay as kyaml
// keeps them.
func (s *items) edit(nodes []*yaml.RNode, written []*workload.Written) ([]*yaml.RNode, error) {
	edited := slices.Clone(nodes)
	for i, w := range written {
		if w == nil || len(w.Edits) == 0 {
			continue
		}
		at := s.index[i]
		text, err := nodes[at].String()
		if err != nil {
			return nil, err
		}
		after, err := yamledit.Apply([]byte(text), 0, w.Edits)
		if err != nil {
			return nil, fmt.Errorf("write the placement of %s: %w", s.workloads[i].Ref(), err)
		}
		if edited[at], err = yaml.Parse(string(after)); err != nil {
			return nil, fmt.Errorf("write the placement of %s: %w", s.workloads[i].Ref(), err)
		}
	}
	return edited, nil
}

// withObjects returns the items with the objects that the plan makes in the
// place of those that it made before.
func withObjects(nodes []*yaml.RNode, plan *compiler.Plan) ([]*yaml.RNode, error) {
	kept := slices.DeleteFunc(slices.Clone(nodes), func(n *yaml.RNode) bool {
		return filepath.Base(fileOf(n).Path) == emit.ObjectsFile && n.GetLabels()[emit.ManagedByLabel] == emit.ManagedBy
	})
	objects, err := emit.Labelled(plan)
	if err != nil {
		return nil, err
	}
	for i, object := range objects {
		node, err := yaml.FromMap(object)
		if err != nil {
			return nil, err
		}
		// Orchestrators older than kustomize 4.2 read the legacy names alone.
		annotations := map[string]string{
			kioutil.PathAnnotation: emit.ObjectsFile, kioutil.LegacyPathAnnotation: emit.ObjectsFile, //nolint:staticcheck // deprecated, and still read by older orchestrators
			kioutil.IndexAnnotation: strconv.Itoa(i), kioutil.LegacyIndexAnnotation: strconv.Itoa(i), //nolint:staticcheck // as above
		}
		if err := node.SetAnnotations(annotations); err != nil {
			return nil, err
		}
		kept = append(kept, node)
	}
	return kept, nil
}

// addResults puts the findings into the list as results. It returns them as the
// error if any is one. What was read may be nil.
func addResults(list *framework.ResourceList, findings diag.Findings, read *items) error {
	for _, f := range findings {
		result := &framework.Result{Message: f.String(), Severity: severities[f.Severity], Tags: map[string]string{"rule": f.Rule}}
		if f.Range.Start.IsValid() {
			result.File = &framework.File{Path: f.Range.Start.File}
			result.Tags["position"] = f.Range.Start.String()
		}
		if read != nil {
			if from, ok := read.origins[f.Subject]; ok {
				result.ResourceRef = &from.ref
				if from.file.Path != "" {
					result.File = &from.file
				}
			}
		}
		list.Results = append(list.Results, result)
	}
	if findings.HasErrors() {
		return list.Results
	}
	return nil
}

var severities = map[diag.Severity]framework.Severity{
	diag.Error: framework.Error, diag.Warning: framework.Warning, diag.Info: framework.Info,
}
