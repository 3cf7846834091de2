package condition

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Condition is when a gate opens: exactly one of its fields is set.
type Condition struct {
	// Peers waits for other pods.
	Peers *Peers `json:"peers,omitempty"`
	// Object waits for an object, or for one of its fields.
	Object *Object `json:"object,omitempty"`
	// Quota waits until a ResourceQuota has room for the pod.
	Quota *Quota `json:"quota,omitempty"`
	// Approval waits until somebody approves.
	Approval *Approval `json:"approval,omitempty"`
	// NotBefore waits for a moment, as RFC 3339 writes it.
	NotBefore string `json:"notBefore,omitempty"`
	// Window waits until a weekly window opens.
	Window *Window `json:"window,omitempty"`
}

// Kind is what a condition is about.
type Kind string

// The kinds of conditions, as the fields of a Condition are called.
const (
	KindPeers     Kind = "peers"
	KindObject    Kind = "object"
	KindQuota     Kind = "quota"
	KindApproval  Kind = "approval"
	KindNotBefore Kind = "notBefore"
	KindWindow    Kind = "window"
)

// Kinds returns all kinds, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{KindPeers, KindObject, KindQuota, KindApproval, KindNotBefore, KindWindow}
}

// Peers is met when there are so many other pods in the pod's namespace. Pods that
// have ended or are being deleted are none, nor is the pod itself.
type Peers struct {
	// Selector selects the peers by their labels, in the form of kubectl's -l.
	Selector string `json:"selector"`
	// Min is how many there must be, at least 1.
	Min int `json:"min"`
	// Ready asks that they are ready, not only that they exist.
	Ready bool `json:"ready,omitempty"`
}

// LabelSelector returns the selector.
func (p *Peers) LabelSelector() (labels.Selector, error) { return labels.Parse(p.Selector) }

// Object is met when the object exists and, if Path is set, has the value there.
// It is in the namespace of the pod, if it is in one: a pod must not make the
// controller look into the namespaces of others.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Path is a JSONPath with braces that finds one value. Of its syntax there are
	// fields, indices and the choice of the elements of a list that have a field of
	// some value: "{.status.phase}", "{.spec['a\.b/c'][0]}" and
	// "{.status.conditions[?(@.type=="Ready")].status}".
	Path string `json:"path,omitempty"`
	// Value is what that value must be, as text. If it is left out, any will do
	// that is not null.
	Value *string `json:"value,omitempty"`
}

// GroupVersionKind returns what the object is.
func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// Quota is met when the pod fits into a ResourceQuota of its namespace, beside all
// pods that do not wait for it.
type Quota struct {
	Name string `json:"name"`
}

// Approval is met when the annotation with ApprovedPrefix names a user and the one
// with DeniedPrefix does not.
type Approval struct{}

// Kind returns which field is set; the first, if there are several, and none of
// the kinds if there is no field.
func (c *Condition) Kind() Kind {
	if set := c.set(); len(set) > 0 {
		return set[0]
	}
	return ""
}

// set returns the fields that are set.
func (c *Condition) set() []Kind {
	var out []Kind
	for _, f := range []struct {
		set  bool
		kind Kind
	}{
		{c.Peers != nil, KindPeers},
		{c.Object != nil, KindObject},
		{c.Quota != nil, KindQuota},
		{c.Approval != nil, KindApproval},
		{c.NotBefore != "", KindNotBefore},
		{c.Window != nil, KindWindow},
	} {
		if f.set {
			out = append(out, f.kind)
		}
	}
	return out
}

// NotBeforeTime returns the moment of NotBefore.
func (c *Condition) NotBeforeTime() (time.Time, error) { return time.Parse(time.RFC3339, c.NotBefore) }

// Encode returns the text of the annotation. A condition that Decode would refuse
// is an error.
func Encode(c *Condition) (string, error) {
	if found := c.Validate(); len(found) > 0 {
		return "", found.ToAggregate()
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the condition of a gate: %w", err)
	}
	return string(text), nil
}

// Validate returns what is wrong with the condition, each with the path of the
// field.
func (c *Condition) Validate() field.ErrorList {
	set := c.set()
	if len(set) != 1 {
		return field.ErrorList{field.Invalid(nil, set, fmt.Sprintf("say one condition, not %d (conditions are %v)", len(set), Kinds()))}
	}
	at := field.NewPath(string(set[0]))
	switch set[0] {
	case KindPeers:
		return c.Peers.validate(at)
	case KindObject:
		return c.Object.validate(at)
	case KindQuota:
		return name(at.Child("name"), c.Quota.Name)
	case KindNotBefore:
		if _, err := c.NotBeforeTime(); err != nil {
			return field.ErrorList{field.Invalid(at, c.NotBefore, `is no time; write one like "2026-11-30T22:00:00Z"`)}
		}
	case KindWindow:
		return c.Window.validate(at)
	case KindApproval:
	}
	return nil
}

func (p *Peers) validate(at *field.Path) field.ErrorList {
	var found field.ErrorList
	selector, err := metav1.ParseToLabelSelector(p.Selector)
	switch {
	case err != nil:
		found = append(found, field.Invalid(at.Child("selector"), p.Selector, fmt.Sprintf("is no label selector: %v", err)))
	case p.Selector == "":
		found = append(found, field.Required(at.Child("selector"), `say which pods are peers ("app=web")`))
	default:
		found = append(found, metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	if p.Min < 1 {
		found = append(found, field.Invalid(at.Child("min"), p.Min, "must be at least 1"))
	}
	return found
}

func (o *Object) validate(at *field.Path) field.ErrorList {
	found := name(at.Child("name"), o.Name)
	if version, err := schema.ParseGroupVersion(o.APIVersion); err != nil || version.Version == "" {
		found = append(found, field.Invalid(at.Child("apiVersion"), o.APIVersion, `is no apiVersion; write one like "batch/v1"`))
	}
	if said := validation.IsDNS1035Label(strings.ToLower(o.Kind)); len(said) > 0 {
		found = append(found, field.Invalid(at.Child("kind"), o.Kind, `is no kind; write one like "Job"`))
	}
	if o.Path == "" {
		if o.Value != nil {
			found = append(found, field.Required(at.Child("path"), "say which field has the value"))
		}
		return found
	}
	if !objectPath.MatchString(o.Path) {
		found = append(found, field.Invalid(at.Child("path"), o.Path, `is no path; write one like "{.status.phase}" or "{.status.conditions[?(@.type==\"Ready\")].status}"`))
	}
	return found
}

// objectPath is the part of JSONPath that Path may be made of. All of it
// compiles; see package fieldpath.
var objectPath = regexp.MustCompile(`^\{(\.[A-Za-z_][-A-Za-z0-9_]*|\['[A-Za-z_](\\\.|[-A-Za-z0-9_/])*'\]|\[[0-9]{1,6}\]|\[\?\(@\.[A-Za-z_][A-Za-z0-9_]*=="[-A-Za-z0-9_./ ]*"\)\])+\}$`)

// name checks the name of an object.
func name(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "say which")}
	}
	var found field.ErrorList
	for _, said := range content.IsPathSegmentName(name) {
		found = append(found, field.Invalid(at, name, said))
	}
	return found
}
