// Package adopt proposes policies for the placement that objects have already.
//
// Propose maps workloads to a Proposal: policies in the language that compile
// back to the fields which were found, each with a selector that selects exactly
// the workloads that have them. It reads the placement in pieces (piece.go), says
// each piece as an intent, as raw, or not at all (phrase*.go), puts together what
// the same workloads share (group.go), selects them (select.go), and has the
// compiler judge the outcome both ways (prove.go); what does not come back as it
// was is said in the next best way. text.go writes the document.
//
// The package must not know where workloads come from, how a proposal is shown
// or written to files, the command line, or a scheduler.
package adopt

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// Request is what a proposal depends on: equal requests give equal proposals,
// byte for byte.
type Request struct {
	// Workloads are all that were read, also those without any placement: a
	// selector must not select them.
	Workloads []*workload.Workload
	// Capabilities are what is known of the cluster; the zero value for nothing.
	Capabilities capability.Capabilities
	// Modernize says nodeSelector as nodes.require, and labels that went out of use
	// by those in their place.
	Modernize bool
	// Package is the name of the CUE package.
	Package string
	// Now is for the compiler.
	Now time.Time
}

// Propose returns the policies for what was found. The error is that of ctx, or
// says that the proposal could not be proved, which is a fault of this program.
func Propose(ctx context.Context, r Request) (*Proposal, error) {
	w := newWork(r)
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	return w.proposal()
}

// work is one run of Propose.
type work struct {
	Request
	// templates are all pod templates that were read.
	templates []*template
	// pools are those that the pieces show.
	pools []*pool
	// policies are the outcome of the last round.
	policies []*draft
	// poolsChanged says that a pool was dropped, so that pieces are said anew.
	poolsChanged bool
	// rounds is how often the compiler was asked.
	rounds int
}

// template is one pod template with the pieces of its placement.
type template struct {
	w     *workload.Workload
	t     *workload.Template
	index int
	// id is its place among all templates.
	id int
	// left says why nothing of it is imported; empty for what is.
	left string
	// pieces are the pieces of its placement.
	pieces []*piece
	// aside are fields that are no pieces, and why.
	aside []aside
}

// aside is a field that is left alone from the beginning.
type aside struct {
	field, value, why string
	// key is that of the piece, if it is one; else empty.
	key string
}

func newWork(r Request) *work {
	w := &work{Request: r}
	// The order of files must not show in what is proposed.
	w.Workloads = slices.SortedStableFunc(slices.Values(r.Workloads), func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range w.Workloads {
		why := untouchable(o)
		for i := range o.Templates {
			t := &template{w: o, t: &o.Templates[i], index: i, id: len(w.templates), left: why}
			t.read(r.Modernize)
			w.templates = append(w.templates, t)
		}
	}
	w.findPools()
	return w
}

// placed reports whether the template has any placement.
func (t *template) placed() bool { return len(t.pieces)+len(t.aside) > 0 }
