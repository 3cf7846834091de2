package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// pageSize is how many objects one list request returns: large enough to need
// few requests, small enough that no answer takes the server long.
const pageSize = 500

// eachPaged calls visit for every object that the paged list function returns.
func eachPaged[L runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), visit func(runtime.Object) error) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	p.PageSize = pageSize
	return p.EachListItem(ctx, metav1.ListOptions{}, visit)
}

// unreadable says in a finding that a kind could not be listed. Only a missing
// permission (or an API that is not there) leaves the rest worth doing; any
// other failure is an Error.
func unreadable(what, consequence string, err error) diag.Finding {
	f := diag.Finding{Rule: "input/cluster", Severity: diag.Error, Message: fmt.Sprintf("cannot list %s: %s", what, Describe(err))}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		f.Rule, f.Severity = "apply/cannot-read", diag.Warning
		f.Message += "; " + consequence
	}
	return f
}

// Describe returns what an API error says, without what was attempted.
func Describe(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
