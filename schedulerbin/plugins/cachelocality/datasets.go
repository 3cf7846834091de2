package cachelocality

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// dataset is one dataset that a pod names. Its fields are exported for the pod's
// signature, which is JSON.
type dataset struct {
	Name string
	// Bytes is its size; 1 for each if the pod gives no sizes.
	Bytes int64
}

// datasets are what a pod names, sorted by name.
type datasets struct {
	sets  []dataset
	sized bool
	total int64
}

// names reports whether the pod names any dataset, without reading which.
func (p *Plugin) names(pod *v1.Pod) bool {
	for _, key := range p.args.DatasetKeys {
		if pod.Labels[key] != "" || pod.Annotations[key] != "" {
			return true
		}
	}
	return false
}

// read returns the datasets that the pod names, nil if it names none. The error
// says which annotation cannot be read, and how it is written.
func (p *Plugin) read(pod *v1.Pod) (*datasets, error) {
	if !p.names(pod) {
		return nil, nil
	}
	d := &datasets{}
	unsized := false
	add := func(key, name, size string) error {
		s := dataset{Name: name, Bytes: 1}
		if size == "" {
			unsized = true
		} else {
			d.sized = true
			bytes, err := args.DatasetSize(size)
			if err != nil {
				return fmt.Errorf("annotation %q: the size of dataset %q: %w", key, name, err)
			}
			s.Bytes = bytes
		}
		for _, other := range d.sets {
			if other.Name == name && other != s {
				return fmt.Errorf("annotation %q: dataset %q is there with two sizes; keep one", key, name)
			}
			if other.Name == name {
				return nil
			}
		}
		if s.Bytes > math.MaxInt64-d.total {
			return fmt.Errorf("annotation %q: the sizes of the pod's datasets add up to more than 8Ei", key)
		}
		d.sets = append(d.sets, s)
		d.total += s.Bytes
		return nil
	}
	for _, key := range p.args.DatasetKeys {
		if name := pod.Labels[key]; name != "" {
			if err := add(key, name, ""); err != nil {
				return nil, err
			}
		}
		for rest := pod.Annotations[key]; rest != ""; {
			var name, size string
			var sized bool
			name, size, sized, rest = next(rest)
			if name == "" || sized && size == "" || strings.ContainsAny(name, " \t\n") {
				return nil, fmt.Errorf("annotation %q is %q, which is no list of datasets; write names, or names with sizes (\"imagenet=120Gi, vocab=2Gi\")", key, pod.Annotations[key])
			}
			if err := add(key, name, size); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case d.sized && unsized:
		return nil, fmt.Errorf("pod names datasets with sizes and without (keys %s), which cannot be weighed; give all a size or none", strings.Join(p.args.DatasetKeys, ", "))
	case len(d.sets) > args.MaxDatasets:
		return nil, fmt.Errorf("pod names %d datasets; at most %d count", len(d.sets), args.MaxDatasets)
	}
	slices.SortFunc(d.sets, func(a, b dataset) int { return cmp.Compare(a.Name, b.Name) })
	return d, nil
}

// readable reports whether the pod's datasets, if it names any, can be read.
func (p *Plugin) readable(pod *v1.Pod) bool {
	_, err := p.read(pod)
	return err == nil
}

// next cuts the first entry off a list of "name" and "name=size", without an
// allocation.
func next(list string) (name, size string, sized bool, rest string) {
	entry, rest, _ := strings.Cut(list, ",")
	name, size, sized = strings.Cut(entry, "=")
	return strings.TrimSpace(name), strings.TrimSpace(size), sized, rest
}

// warm returns the share of the pod's data that the node has warm, from 0 to
// wholly. An entry of the node that cannot be read counts as cold.
func (d *datasets) warm(node *v1.Node, keys []string) int64 {
	var bytes [args.MaxDatasets]int64
	found := false
	for _, key := range keys {
		if name := node.Labels[key]; name != "" {
			if i := d.index(name); i >= 0 {
				bytes[i], found = d.sets[i].Bytes, true
			}
		}
		for rest := node.Annotations[key]; rest != ""; {
			var name, size string
			var sized bool
			name, size, sized, rest = next(rest)
			i := d.index(name)
			if i < 0 {
				continue
			}
			has := d.sets[i].Bytes
			if sized {
				q, err := resource.ParseQuantity(size)
				if err != nil || q.Sign() <= 0 {
					continue
				}
				if d.sized {
					has = min(has, q.Value())
				}
			}
			bytes[i], found = max(bytes[i], has), true
		}
	}
	if !found {
		return 0
	}
	var sum int64
	for _, b := range bytes[:len(d.sets)] {
		sum += b
	}
	return int64(float64(sum) / float64(d.total) * wholly)
}

// index is the place of the dataset of that name, -1 if the pod names none such.
func (d *datasets) index(name string) int {
	for i := range d.sets {
		if d.sets[i].Name == name {
			return i
		}
	}
	return -1
}
