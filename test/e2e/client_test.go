package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// patience is how long anything may take that the cluster does by itself. Tests
// run side by side on few cores.
const patience = 3 * time.Minute

// client does to the cluster what others than the plugin do: the team that
// deploys, the admin who scales, the test that looks.
type client struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	// names maps what people write ("deploy") to resources.
	names meta.RESTMapper
	// namespace is that of objects that name none.
	namespace string
}

func newClient(config *rest.Config, namespace string) (*client, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(kube.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &client{kube: kube, dynamic: dyn, mapper: mapper, names: restmapper.NewShortcutExpander(mapper, cached, nil), namespace: namespace}, nil
}

// until polls the condition until it holds. Its last error, or what it says is
// missing, comes back when patience is over.
func until(ctx context.Context, what string, condition func(context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	reason := errors.New("nothing known")
	for {
		missing, err := condition(ctx)
		switch {
		case err == nil && missing == "":
			return nil
		case err == nil:
			reason = errors.New(missing)
		case ctx.Err() == nil:
			reason = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s: %w", what, reason)
		case <-tick.C:
		}
	}
}

// readManifests reads the objects of a stream of YAML documents.
func readManifests(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := map[string]any{}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object) == 0:
			continue
		}
		u := &unstructured.Unstructured{Object: object}
		if !u.IsList() {
			objects = append(objects, u)
			continue
		}
		list, err := u.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}

// create creates the object as "kubectl create" does, together with the namespace
// that it names if that is missing.
func (c *client) create(ctx context.Context, object *unstructured.Unstructured) error {
	_, err := c.put(ctx, object, func(r dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return r.Create(ctx, object, metav1.CreateOptions{FieldManager: "kubectl-create"})
	})
	return err
}

// apply applies the object as the field manager, without force, and returns it as
// it is then.
func (c *client) apply(ctx context.Context, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return c.applyWith(ctx, object, metav1.ApplyOptions{FieldManager: manager})
}

// takeOver is apply that wins where others own a field.
func (c *client) takeOver(ctx context.Context, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return c.applyWith(ctx, object, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

func (c *client) applyWith(ctx context.Context, object *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return c.put(ctx, object, func(r dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return r.Apply(ctx, object.GetName(), object, options)
	})
}

// put writes the object into the namespace that it names, which is made if that
// is missing, or into the client's own.
func (c *client) put(ctx context.Context, object *unstructured.Unstructured, write func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	mapping, err := c.mapping(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
		if err := c.ensureNamespace(ctx, object.GetNamespace()); err != nil {
			return nil, err
		}
	}
	live, err := write(c.resource(mapping, object.GetNamespace()))
	if err == nil && object.GetKind() == "CustomResourceDefinition" {
		err = c.established(ctx, object.GetName())
	}
	return live, err
}

// refused waits until admission refuses the object, for a reason with the text in
// it. Nothing is created meanwhile.
func (c *client) refused(ctx context.Context, object *unstructured.Unstructured, text string) error {
	mapping, err := c.mapping(ctx, object.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := c.ensureNamespace(ctx, object.GetNamespace()); err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s/%s is refused", object.GetKind(), object.GetNamespace(), object.GetName())
	return until(ctx, what, func(ctx context.Context) (string, error) {
		_, err := c.resource(mapping, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return "it would be created", nil
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), text):
			return "", nil
		}
		return "", err
	})
}

// mapping waits for kinds that have just been defined.
func (c *client) mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	var mapping *meta.RESTMapping
	err := until(ctx, "the API server serves "+kind.String(), func(context.Context) (string, error) {
		var err error
		mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			c.mapper.Reset()
		}
		return "", err
	})
	return mapping, err
}

func (c *client) established(ctx context.Context, definition string) error {
	resource := c.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	return until(ctx, "definition "+definition+" is established", func(ctx context.Context) (string, error) {
		crd, err := resource.Get(ctx, definition, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, condition := range conditions {
			if condition, ok := condition.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
				return "", nil
			}
		}
		return "it is not", err
	})
}

// ensureNamespace creates the namespace unless it is there, and waits until pods
// can be created in it.
func (c *client) ensureNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	return until(ctx, "namespace "+name+" has its service account", func(ctx context.Context) (string, error) {
		_, err := c.kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return "", err
	})
}

func (c *client) resource(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(namespace)
	}
	return resource
}

// reference is an object by the name that people write: "deploy/web",
// "shop/deploy/web" in another namespace than one's own.
type reference struct {
	resource  dynamic.ResourceInterface
	namespace string
	name      string
}

func (c *client) reference(text string) (reference, error) {
	parts := strings.Split(text, "/")
	namespace := c.namespace
	if len(parts) == 3 {
		namespace, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 {
		return reference{}, fmt.Errorf("%q: want [NAMESPACE/]RESOURCE/NAME", text)
	}
	resource := schema.ParseGroupResource(parts[0]).WithVersion("")
	kind, err := c.names.KindFor(resource)
	if err != nil {
		return reference{}, err
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return reference{}, err
	}
	return reference{resource: c.resource(mapping, namespace), namespace: namespace, name: parts[1]}, nil
}

func (c *client) get(ctx context.Context, text string) (*unstructured.Unstructured, error) {
	ref, err := c.reference(text)
	if err != nil {
		return nil, err
	}
	return ref.resource.Get(ctx, ref.name, metav1.GetOptions{})
}

// patch changes an object as somebody else would, under the name of manager.
func (c *client) patch(ctx context.Context, text, manager string, kind types.PatchType, patch string) error {
	ref, err := c.reference(text)
	if err != nil {
		return err
	}
	_, err = ref.resource.Patch(ctx, ref.name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	return err
}

func (c *client) delete(ctx context.Context, text string) error {
	ref, err := c.reference(text)
	if err != nil {
		return err
	}
	return ref.resource.Delete(ctx, ref.name, metav1.DeleteOptions{})
}
