// Package cluster reads from a live cluster what placement depends on: what
// the cluster is (version, nodes, namespaces, volumes, priority classes), which
// workloads it holds, and where their pods are.
//
// It maps API objects to capability.Capabilities and workload.Workload. It only
// reads: it must not know policies, plans, or how anything is written
// (internal/apply).
package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Client holds the clients of one cluster. All of them share one connection.
type Client struct {
	Kube     kubernetes.Interface
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Mapper   meta.RESTMapper
	// Host is the API server's address, for messages.
	Host string
}

// Connect returns the clients for the configuration. Nothing is asked of the
// cluster yet, so an address where nobody answers shows later.
//
// The client's own rate limit is off: the server's flow control is the fair
// one, and the callers bound how many requests run at once.
func Connect(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	// Typed objects are asked for in their binary form, which takes a fraction of the
	// time and memory; who does not have it answers in JSON.
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfigAndClient(typed, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery()))
	return &Client{Kube: kube, Dynamic: dyn, Metadata: metadataClient, Mapper: mapper, Host: config.Host}, nil
}

// Minor returns the minor version of the API server: 37 for v1.37.2.
func (c *Client) Minor(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	info, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", c.Host, err)
	}
	// Some distributions append a plus sign.
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: minor version %q is not a number", c.Host, info.Minor)
	}
	return minor, nil
}

// Resource returns the REST mapping of a kind, in the given version or, if that
// is empty, in the one that the server prefers. For a kind that the cluster
// does not serve the error satisfies meta.IsNoMatchError.
func (c *Client) Resource(gk schema.GroupKind, version string) (*meta.RESTMapping, error) {
	if version == "" {
		return c.Mapper.RESTMapping(gk)
	}
	return c.Mapper.RESTMapping(gk, version)
}

// Interface returns the dynamic client for the mapped resource in the
// namespace, which is ignored for kinds without one.
func (c *Client) Interface(m *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	resource := c.Dynamic.Resource(m.Resource)
	if m.Scope.Name() != meta.RESTScopeNameNamespace {
		return resource
	}
	return resource.Namespace(namespace)
}
