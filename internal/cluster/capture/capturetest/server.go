// Package capturetest is an API server that only lists, page by page as the real one
// does, and a large generated cluster for it to list: for tests and benchmarks of
// captures. It must not know what a capture does with what it gets.
package capturetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// Resource is what is listed at one path.
type Resource struct {
	schema.GroupVersionKind
	// Name is the plural, as in paths.
	Name string
	// Namespaced is what discovery says of it.
	Namespaced bool
	// Len is how many objects there are, At makes one.
	Len int
	At  func(i int) runtime.Object
}

// Server serves the lists of its resources, and their discovery.
type Server struct {
	Resources []Resource
	// Refuse returns the status with which a list request is refused, 0 for none.
	Refuse func(resource string, page int) (code int, status metav1.Status)

	mu    sync.Mutex
	pages map[string]int
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	switch path {
	case "version":
		reply(w, map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
	case "api":
		reply(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "apis":
		reply(w, s.groups())
	default:
		s.group(w, r, path)
	}
}

func reply(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // the client is gone
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[schema.GroupVersion]bool{}
	for _, r := range s.Resources {
		gv := r.GroupVersion()
		if gv.Group == "" || seen[gv] {
			continue
		}
		seen[gv] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

// group serves what is below a group and version: the resources there, or a list.
func (s *Server) group(w http.ResponseWriter, r *http.Request, path string) {
	found := false
	discovery := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for i := range s.Resources {
		resource := &s.Resources[i]
		prefix := "apis/" + resource.GroupVersion().String()
		if resource.Group == "" {
			prefix = "api/" + resource.Version
		}
		switch path {
		case prefix:
			found, discovery.GroupVersion = true, resource.GroupVersion().String()
			discovery.APIResources = append(discovery.APIResources, metav1.APIResource{
				Name: resource.Name, Kind: resource.Kind, Namespaced: resource.Namespaced, Verbs: metav1.Verbs{"list", "get"},
			})
		case prefix + "/" + resource.Name:
			s.list(w, r, resource)
			return
		}
	}
	if found {
		reply(w, discovery)
		return
	}
	refuse(w, http.StatusNotFound, metav1.Status{Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"})
}

func refuse(w http.ResponseWriter, code int, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status, status.Code = metav1.StatusFailure, int32(code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status) // the client is gone
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, resource *Resource) {
	name := schema.GroupResource{Group: resource.Group, Resource: resource.Name}.String()
	s.mu.Lock()
	if s.pages == nil {
		s.pages = map[string]int{}
	}
	page := s.pages[name]
	s.pages[name]++
	s.mu.Unlock()
	if s.Refuse != nil {
		if code, status := s.Refuse(name, page); code != 0 {
			refuse(w, code, status)
			return
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	if r.URL.Query().Get("labelSelector") != "" {
		// Nothing here has the labels of a scheduler, which is all that anybody asks for.
		from = resource.Len
	}
	to := resource.Len
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
		to = min(to, from+limit)
	}
	if err := s.page(w, r, resource, from, to); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, resource *Resource, from, to int) error {
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if to < resource.Len {
		meta.Continue = strconv.Itoa(to)
		meta.RemainingItemCount = new(int64(resource.Len - to))
	}
	object, err := scheme.Scheme.New(resource.GroupVersion().WithKind(resource.Kind + "List"))
	if err != nil { // a kind without a Go type
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(resource.GroupVersion().WithKind(resource.Kind + "List"))
		u.SetContinue(meta.Continue)
		u.SetRemainingItemCount(meta.RemainingItemCount)
		for i := from; i < to; i++ {
			u.Items = append(u.Items, *resource.At(i).(*unstructured.Unstructured))
		}
		data, err := u.MarshalJSON()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, err = w.Write(data)
		return err
	}
	list := reflect.ValueOf(object).Elem()
	list.FieldByName("ListMeta").Set(reflect.ValueOf(meta))
	items := list.FieldByName("Items")
	for i := from; i < to; i++ {
		items = reflect.Append(items, reflect.ValueOf(resource.At(i)).Elem())
	}
	list.FieldByName("Items").Set(items)
	object.GetObjectKind().SetGroupVersionKind(resource.GroupVersion().WithKind(resource.Kind + "List"))
	if strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		return protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, w)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	return json.NewEncoder(w).Encode(object)
}

// Fixed makes a resource of given objects.
func Fixed(gvk schema.GroupVersionKind, name string, namespaced bool, objects ...runtime.Object) Resource {
	return Resource{GroupVersionKind: gvk, Name: name, Namespaced: namespaced, Len: len(objects), At: func(i int) runtime.Object { return objects[i] }}
}

// Forbidden is the status with which the API server refuses a list.
func Forbidden(resource string) metav1.Status {
	return metav1.Status{Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf("%s is forbidden: User \"x\" cannot list resource", resource)}
}
