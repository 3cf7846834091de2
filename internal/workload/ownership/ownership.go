// Package ownership records which placement fields of somebody else's object
// are ours, and takes them away again.
//
// The record lives in one annotation on the object, written in the same edit
// or request as the fields, so that the two cannot come apart. With it a second
// run starts from the object as it was without us, which makes compiling
// idempotent and withdrawing possible. The package must not know policies,
// files or clusters: it maps an object and its record to the object before us.
package ownership

// Annotation is the key of the annotation that holds the Record, as JSON, in
// the metadata of the object itself (never of the pod template, which would
// restart the pods).
const Annotation = "kubectl-sched.github.io/placement"

// SetLabel is the key of the label that names the set which a live object's
// fields belong to. In-place manifests do not have it.
const SetLabel = "kubectl-sched.github.io/set"

// Record is what we own in one object. As JSON it has the values in full, as the
// revisions of a set keep it; Encode writes the short form for the annotation.
type Record struct {
	// UID is that of the live object which the record was written for; empty in
	// a manifest. A record with another UID was copied and is not believed.
	UID string `json:"uid,omitempty"`
	// Revision is the revision of the set that wrote it; 0 in a manifest.
	Revision int `json:"rev,omitempty"`
	// Made counts the parents of the annotation that were not there before us
	// (1 for "annotations", 2 for "metadata" too).
	Made int `json:"made,omitempty"`
	// Null says that the outermost of them was there with the value null.
	Null bool `json:"null,omitempty"`
	// Fields are the fields that we changed, sorted by Path.
	Fields []Field `json:"fields"`
}

// Field is one field that we changed: an atom of ownership. Lists that unite
// (tolerations, spread constraints, affinity terms) are one Field each.
type Field struct {
	// Path is the JSON pointer of the field in the object.
	Path string `json:"path"`
	// Template is the name of the pod template that the field belongs to, for
	// kinds that have several: where the object's list of templates has been
	// reordered since, the name finds the field again.
	Template string `json:"tpl,omitempty"`
	// Container is the name of the container that the field belongs to, for the
	// same reason; empty for a field of the pod.
	Container string `json:"ctr,omitempty"`
	// Before is the value that was there before us, nil if there was none.
	Before any `json:"before,omitempty"`
	// Wrote is the value that we left there; nil where we took the field away,
	// and where only Sum is known of it.
	Wrote any `json:"wrote,omitempty"`
	// Sum is what a record that was read from an annotation knows of the value
	// that we left; nil where we took the field away, or where Wrote says it.
	Sum *Digest `json:"sum,omitempty"`
	// Made counts the parents of the field that were not there before us, from
	// the innermost outwards: they go when they are empty again.
	Made int `json:"made,omitempty"`
	// Null says that the outermost of the made parents, or the field itself if
	// none was made, was there before us with the value null.
	Null bool `json:"null,omitempty"`
}

// left is the digest of the value that we left there, nil if we took the field
// away.
func (f *Field) left() *Digest {
	if f.Wrote != nil {
		return DigestOf(f.Wrote)
	}
	return f.Sum
}

// Recall fills in the values that we wrote, of which an annotation has only the
// sums, from the object that it was read from: Wrote is set for each field that
// still is as we left it. The object is not changed.
func (r *Record) Recall(object map[string]any) {
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.Wrote != nil || f.Sum == nil {
			continue
		}
		if now, ok := lookup(object, Tokens(f.Path)); ok && f.Sum.Is(now) {
			f.Wrote, f.Sum = now, nil
		}
	}
}
