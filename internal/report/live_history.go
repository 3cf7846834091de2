package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
	"github.com/kubectl-sched/kubectl-sched/internal/objectyaml"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// revisionDocument is one revision for tools.
type revisionDocument struct {
	Number    int                 `json:"number"`
	State     apply.RevisionState `json:"state"`
	Cause     string              `json:"cause"`
	By        string              `json:"by,omitempty"`
	Tool      string              `json:"tool"`
	Started   time.Time           `json:"started"`
	Finished  time.Time           `json:"finished,omitzero"`
	Scope     apply.Scope         `json:"scope"`
	Surface   policy.Surface      `json:"surface,omitempty"`
	Observe   bool                `json:"observe,omitempty"`
	Workloads []string            `json:"workloads"`
	Objects   []string            `json:"objects,omitempty"`
	Nodes     []string            `json:"nodes,omitempty"`
}

// History writes the revisions of a set, the oldest first, as a table or for
// tools.
func History(w io.Writer, format Format, state *apply.State, o Options) error {
	if format != Text {
		return documents(w, format, "History", map[string]any{"set": state.Set.Name, "namespace": state.Set.Namespace, "scope": state.Scope, "revisions": revisionDocuments(state)})
	}
	t := &table{}
	t.add("REVISION", "STARTED (UTC)", "STATE", "HOLDS", "CAUSE")
	for _, r := range state.Revisions {
		stateText := string(r.State)
		switch {
		case r.State == apply.Open && state.Writer().Active(o.Now) && state.Writer().Revision == r.Number:
			stateText = "being written"
		case r.State == apply.Open:
			stateText = "interrupted"
		}
		cause := r.Cause
		if r.By != "" {
			cause += " by " + r.By
		}
		t.add(fmt.Sprint(r.Number), r.Started.UTC().Format("2006-01-02 15:04"), stateText, holdings(r), cause)
	}
	_, err := io.WriteString(w, t.text(o.width()))
	return err
}

// holdings counts what is in a revision.
func holdings(r *apply.Revision) string {
	parts := []string{plural(len(r.Items), "workload")}
	if len(r.Objects) > 0 {
		parts = append(parts, plural(len(r.Objects), "object"))
	}
	if nodes := writtenNodes(r); len(nodes) > 0 {
		parts = append(parts, plural(len(nodes), "node"))
	}
	return strings.Join(parts, ", ")
}

// writtenNodes names the nodes with taints or labels of the revision, sorted.
func writtenNodes(r *apply.Revision) []string {
	var names []string
	for _, n := range r.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func revisionDocuments(state *apply.State) []revisionDocument {
	list := make([]revisionDocument, 0, len(state.Revisions))
	for _, r := range state.Revisions {
		d := revisionDocument{Number: r.Number, State: r.State, Cause: r.Cause, By: r.By, Tool: r.Tool, Started: r.Started, Finished: r.Finished, Scope: r.Scope, Surface: r.Step.Surface, Observe: r.Step.Observe, Workloads: []string{}}
		for _, item := range r.Items {
			d.Workloads = append(d.Workloads, item.Ref())
		}
		for _, o := range r.Objects {
			d.Objects = append(d.Objects, o.Ref())
		}
		d.Nodes = writtenNodes(r)
		list = append(list, d)
	}
	return list
}

// documents writes one document of ours as JSON or YAML.
func documents(w io.Writer, format Format, kind string, fields map[string]any) error {
	fields["apiVersion"], fields["kind"] = APIVersion, kind
	data, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", kind, err)
	}
	switch format {
	case JSON:
		data = append(data, '\n')
	case YAML:
		if data, err = objectyaml.FromJSON(data); err != nil {
			return fmt.Errorf("encode %s: %w", kind, err)
		}
	default:
		_, err := ParseFormat(string(format), Text, JSON, YAML)
		return err
	}
	_, err = w.Write(data)
	return err
}
