package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gates"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
)

// extraOptions are what the command has beside kube-scheduler's options.
type extraOptions struct {
	// gates has the leader open scheduling gates of ours.
	gates bool
	// own are the plugins of whoever built the command.
	own []registry.Plugin
	// recording is the file that scheduling cycles are recorded in; empty for none.
	recording string
}

func (o *extraOptions) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&o.gates, "gates", true, "Open the scheduling gates of kubectl sched when their conditions hold. It takes the verb patch on pods, and get, list and watch on resourcequotas and on what pods wait for.")
	flags.StringVar(&o.recording, "record-attempts", "", "Write what the scheduler sees, tries and decides into this file, a line of JSON for each scheduling cycle, with the objects that it sees. Every node is scored then, and what upstream does in the background is done in turn. For tests: it takes time, and the file grows.")
}

// newGates makes the controller that opens gates, on the informers of prepared.
func newGates(ctx context.Context, prepared *schedulerconfig.Config) (*gates.Controller, error) {
	if err := mayOpenGates(ctx, prepared.Client); err != nil {
		return nil, err
	}
	instance, err := replica()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(prepared.KubeConfig)
	if err != nil {
		return nil, err
	}
	controller, err := gates.New(gates.Options{
		Client: prepared.Client, Dynamic: objects,
		Mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(prepared.Client.Discovery())),
		Informers: prepared.InformerFactory, Instance: instance,
	})
	if err != nil {
		return nil, err
	}
	legacyregistry.RawMustRegister(controller)
	return controller, nil
}

// runGates opens gates until ctx is over.
func runGates(ctx context.Context, controller *gates.Controller) {
	if err := controller.Run(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Gates are not opened any more")
	}
}

// mayOpenGates returns an error if our account lacks a right that the controller
// needs at any rate. Without one to list, the informers, and with them the
// scheduler, would wait for ever.
func mayOpenGates(ctx context.Context, client kubernetes.Interface) error {
	var missing []string
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "pods"},
		{Verb: "list", Resource: "resourcequotas"},
		{Verb: "watch", Resource: "resourcequotas"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("ask whether this account may open gates: %w", err)
		}
		if !answer.Status.Allowed {
			missing = append(missing, right.Verb+" "+right.Resource)
		}
	}
	if len(missing) > 0 {
		return errors.New("to open scheduling gates this account must have the right to " + strings.Join(missing, ", ") + " in all namespaces; grant it, or start with --gates=false")
	}
	return nil
}
