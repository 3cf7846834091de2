// Package gangkey says which gang a pod belongs to, from the pod's own labels,
// annotations and controller alone. The bundled scheduler groups pods by it, and
// whoever writes pod templates marks them by the names that it exports.
//
// It must not know a cluster, a scheduler, or whether the gang's PodGroup object
// exists.
package gangkey

import (
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Label names the PodGroup of a pod, as scheduler-plugins, Kubeflow, JobSet and
	// Kueue write it; the object is a PodGroup of scheduling.x-k8s.io/v1alpha1.
	Label = "scheduling.x-k8s.io/pod-group"
	// LabelOlder names the PodGroup of a pod as scheduler-plugins 0.19 to 0.22 did;
	// the object was a PodGroup of scheduling.sigs.k8s.io/v1alpha1.
	LabelOlder = "pod-group.scheduling.sigs.k8s.io"
	// LabelOldest names the gang of a pod as scheduler-plugins 0.18 did, where there
	// was no object and LabelMinAvailable said the size.
	LabelOldest = "pod-group.scheduling.sigs.k8s.io/name"
	// LabelMinAvailable says how many members the gang of a pod needs. It counts
	// where no PodGroup object says it.
	LabelMinAvailable = "pod-group.scheduling.sigs.k8s.io/min-available"
	// PerAnnotation with the value PerController makes each controller's pods a gang
	// of their own, though they share a label: the runs of a CronJob.
	PerAnnotation = "kubectl-sched.github.io/gang-per"
	// PerController is the value of PerAnnotation.
	PerController = "controller"
)

// Family is one of the ways in which gangs are named. Gangs of two families with
// one name are two gangs.
type Family string

// The families.
const (
	FamilyX      Family = "x-k8s.io"    // Label, PodGroup of scheduling.x-k8s.io
	FamilyOlder  Family = "sigs.k8s.io" // LabelOlder, PodGroup of scheduling.sigs.k8s.io
	FamilyOldest Family = "label"       // LabelOldest, no object
)

// Gang identifies a gang. It is comparable.
type Gang struct {
	Family    Family
	Namespace string
	// Name is the label's value, and the name of the PodGroup object.
	Name string
	// Run is the UID of the controller whose pods alone make up the gang; empty
	// where all pods with the label do.
	Run types.UID
}

// Key returns the name under which the scheduler knows the gang. The colons in it
// keep it apart from every PodGroup object's name, and a slash, which the
// scheduler splits its keys at, is never in it.
func (g Gang) Key() string {
	key := string(g.Family) + ":" + g.Name
	if g.Run != "" {
		key += ":" + string(g.Run)
	}
	return key
}

// labels lists the label of each family, the newest first: it wins where a pod
// has several.
var labels = []struct {
	label  string
	family Family
}{
	{Label, FamilyX},
	{LabelOlder, FamilyOlder},
	{LabelOldest, FamilyOldest},
}

// Labels returns the labels that name gangs, the newest first.
func Labels() []string {
	names := make([]string, 0, len(labels))
	for _, l := range labels {
		names = append(names, l.label)
	}
	return names
}

// Of returns the gang of an object with the metadata of a pod, and whether it has
// one.
func Of(pod metav1.Object) (Gang, bool) {
	for _, l := range labels {
		name := pod.GetLabels()[l.label]
		if name == "" {
			continue
		}
		gang := Gang{Family: l.family, Namespace: pod.GetNamespace(), Name: name}
		if controller := metav1.GetControllerOf(pod); controller != nil && runAlone(pod, controller) {
			gang.Run = controller.UID
		}
		return gang, true
	}
	return Gang{}, false
}

// Gated reports whether somebody holds the pod back by a scheduling gate: no scheduler
// looks at it.
func Gated(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) > 0
}

// MinAvailable returns how many members pod says that its gang needs, or 0 where
// it does not say so, or not as a whole number above 0.
func MinAvailable(pod metav1.Object) int32 {
	n, err := strconv.ParseInt(pod.GetLabels()[LabelMinAvailable], 10, 32)
	if err != nil || n < 1 {
		return 0
	}
	return int32(n)
}

// runAlone reports whether the pods of controller are a gang of their own.
func runAlone(pod metav1.Object, controller *metav1.OwnerReference) bool {
	if pod.GetAnnotations()[PerAnnotation] == PerController {
		return true
	}
	return controller.Kind == "Job" && isCronRun(controller.Name, pod.GetCreationTimestamp().Time)
}

// cronSuffix is the end of the name that the CronJob controller gives a Job: the
// minutes since 1970 at which it was due (pkg/controller/cronjob, getJobName).
var cronSuffix = regexp.MustCompile(`-([0-9]{7,9})$`)

// isCronRun reports whether a Job called name, one of whose pods was created at
// created, is a run of a CronJob. A CronJob's pods do not say so themselves, and
// all of its runs have the same labels. A run is started at its time or, after an
// outage, later; clocks differ by less than an hour.
func isCronRun(name string, created time.Time) bool {
	match := cronSuffix.FindStringSubmatch(name)
	if match == nil {
		return false
	}
	minutes, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return false
	}
	due := time.Unix(minutes*60, 0)
	return due.Before(created.Add(time.Hour)) && due.After(created.Add(-365*24*time.Hour))
}

// Priority returns the priority of pod: 0 where none was admitted.
func Priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
