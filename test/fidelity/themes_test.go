package fidelity_test

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

const never = corev1.PreemptNever

// themes add pods of a kind to a case, each with a bit of the others.
var themes = []func(*generator){
	(*generator).plain, (*generator).spreading, (*generator).preferring, (*generator).keepingApart,
	(*generator).important, (*generator).storing, (*generator).ganging, (*generator).training, (*generator).mixed, (*generator).mixed,
}

// pod returns the next pod.
func (g *generator) pod() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.c.namespace, Name: fmt.Sprintf("p%02d", g.pods),
			Labels: map[string]string{"app": g.one(apps), "rev": strconv.Itoa(g.IntN(2))}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName: plainProfile, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Tolerations: []corev1.Toleration{{Key: caseLabel, Value: g.c.namespace, Effect: corev1.TaintEffectNoSchedule}},
			Containers: []corev1.Container{{Name: "c", Image: "registry.example/app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(g.IntN(8))*125, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(g.IntN(8))<<27, resource.BinarySI),
			}}}},
		},
	}
	g.pods++
	return p
}

// copies returns up to n pods like the first, with names of their own.
func (g *generator) copies(first *corev1.Pod, n int) []*corev1.Pod {
	pods := []*corev1.Pod{first}
	for range n - 1 {
		p := first.DeepCopy()
		p.Name = fmt.Sprintf("p%02d", g.pods)
		g.pods++
		pods = append(pods, p)
	}
	return pods
}

// hold puts the pod behind a gate.
func hold(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "fidelity.example/hold"}}
}

func (g *generator) create(pods ...*corev1.Pod) {
	g.c.steps = append(g.c.steps, step{create: pods})
}

func (g *generator) plain() {
	p := g.pod()
	switch g.IntN(8) {
	case 0: // nobody can serve it
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("64")
	case 1:
		hold(p)
		g.create(p)
		if g.may(2) {
			g.c.steps = append(g.c.steps, step{wait: true}, step{open: p.Name})
		}
		return
	case 2:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8080 + g.IntN(2))}}
	case 3:
		p.Spec.NodeName, p.Spec.SchedulerName = g.c.nodes[g.IntN(len(g.c.nodes))].Name, plainProfile
	}
	g.create(g.copies(p, 1+g.IntN(5))...)
}

func (g *generator) key() string {
	return g.one([]string{corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, tierKey})
}

func (g *generator) spread(p *corev1.Pod) {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 + g.IntN(2)), TopologyKey: g.key(), WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}},
	}
	if g.may(3) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if g.may(3) {
		c.MinDomains = ptr.To(int32(1 + g.IntN(4)))
	}
	if g.may(2) {
		c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
	}
	if g.may(3) {
		c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
	}
	if g.may(3) {
		c.MatchLabelKeys = []string{"rev"}
	}
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
}

func (g *generator) spreading() {
	p := g.pod()
	g.spread(p)
	if g.may(3) {
		g.spread(p)
		first, last := &p.Spec.TopologySpreadConstraints[0], &p.Spec.TopologySpreadConstraints[1]
		if first.TopologyKey == last.TopologyKey {
			p.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints[:1]
		}
	}
	g.sometimes(p)
	g.create(g.copies(p, 2+g.IntN(6))...)
}

// expression is something that can be asked of a node's labels.
func (g *generator) expression() corev1.NodeSelectorRequirement {
	switch g.IntN(4) {
	case 0:
		return corev1.NodeSelectorRequirement{Key: tierKey, Operator: corev1.NodeSelectorOpExists}
	case 1:
		return corev1.NodeSelectorRequirement{Key: tierKey, Operator: corev1.NodeSelectorOpNotIn, Values: []string{g.one(tiers)}}
	case 2:
		return corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{g.one(zones), g.one(zones)}}
	}
	return corev1.NodeSelectorRequirement{Key: tierKey, Operator: corev1.NodeSelectorOpIn, Values: []string{g.one(tiers)}}
}

func (g *generator) nodeAffinity(p *corev1.Pod) {
	a := &corev1.NodeAffinity{}
	if g.may(2) {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{g.expression()}}
		if g.may(4) {
			term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{g.c.nodes[g.IntN(len(g.c.nodes))].Name},
			}}}
		}
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	}
	for range g.IntN(3) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: int32(1 + g.IntN(100)), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{g.expression()}},
		})
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	p.Spec.Affinity.NodeAffinity = a
}

func (g *generator) tolerate(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: taintKey, Operator: corev1.TolerationOpEqual, Value: g.one(tiers), Effect: corev1.TaintEffectNoSchedule})
}

func (g *generator) preferring() {
	p := g.pod()
	g.nodeAffinity(p)
	if g.may(2) {
		g.tolerate(p)
	}
	if g.may(4) {
		p.Spec.NodeSelector = map[string]string{tierKey: g.one(tiers)}
	}
	g.create(g.copies(p, 1+g.IntN(5))...)
}

func (g *generator) podTerm() corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{TopologyKey: g.key(), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": g.one(apps)}}}
	if g.may(4) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	}
	if g.may(5) {
		term.MatchLabelKeys = []string{"rev"}
	}
	return term
}

func (g *generator) podAffinity(p *corev1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	weighted := []corev1.WeightedPodAffinityTerm{{Weight: int32(1 + g.IntN(100)), PodAffinityTerm: g.podTerm()}}
	switch g.IntN(4) {
	case 0:
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{g.podTerm()}}
	case 1:
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	case 2:
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{g.podTerm()}}
	case 3:
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	}
}

func (g *generator) keepingApart() {
	p := g.pod()
	g.podAffinity(p)
	if g.may(3) {
		g.podAffinity(p)
	}
	g.sometimes(p)
	g.create(g.copies(p, 1+g.IntN(5))...)
}

// sometimes adds something of another kind.
func (g *generator) sometimes(p *corev1.Pod) {
	if g.may(4) {
		g.nodeAffinity(p)
	}
	if g.may(4) {
		g.tolerate(p)
	}
	if g.may(5) {
		p.Spec.PriorityClassName = g.one([]string{lowClass, highClass, politeClass})
	}
}

// important fills the cluster, and then wants room.
func (g *generator) important() {
	big := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(1+g.IntN(3))*500, resource.DecimalSI)
		return p
	}
	low := big(g.pod())
	low.Spec.PriorityClassName = g.one([]string{"", lowClass})
	g.create(g.copies(low, 2+g.IntN(6))...)
	if g.may(2) {
		g.c.steps = append(g.c.steps, step{wait: true})
	}
	high := big(g.pod())
	high.Spec.PriorityClassName = g.one([]string{highClass, highClass, highest, politeClass})
	switch g.IntN(5) {
	case 0:
		g.podAffinity(high)
	case 1:
		g.spread(high)
	case 2:
		g.nodeAffinity(high)
	}
	g.create(g.copies(high, 1+g.IntN(3))...)
}

// claim adds a claim to the case, and the pod's volume.
func (g *generator) claim(p *corev1.Pod, class string, size string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	name := fmt.Sprintf("c%02d", len(g.c.claims))
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.c.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	g.c.claims = append(g.c.claims, c)
	use(p, name)
	return c
}

func use(p *corev1.Pod, claim string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
}

func (g *generator) storing() {
	p := g.pod()
	switch g.IntN(5) {
	case 0, 1: // a volume that is bound, in a zone
		c := g.claim(p, "", "1Gi", corev1.ReadWriteOnce)
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: g.c.namespace + "-" + c.Name, Labels: map[string]string{caseLabel: g.c.namespace}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: c.Spec.AccessModes,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nonexistent/fidelity"}},
				ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{g.one(zones)}}},
				}}}},
			},
		}
		c.Spec.VolumeName = v.Name
		g.c.volumes = append(g.c.volumes, v)
		g.create(p)
	case 2: // a volume that is made where the pod goes
		g.claim(p, "standard", "1Gi", corev1.ReadWriteOnce)
		g.create(p)
	case 3: // one that two pods want for themselves
		g.claim(p, "standard", "1Gi", corev1.ReadWriteOncePod)
		g.create(g.copies(p, 2)...)
	case 4: // storage that is short, and that nobody makes
		g.claim(p, scarceClass, g.one([]string{"1Gi", "10Gi", "50Gi"}), corev1.ReadWriteOnce)
		if len(g.c.capacity) == 0 {
			for _, zone := range zones[:2] {
				g.c.capacity = append(g.c.capacity, &storagev1.CSIStorageCapacity{
					ObjectMeta:       metav1.ObjectMeta{Namespace: g.c.namespace, Name: zone},
					StorageClassName: scarceClass, Capacity: ptr.To(resource.MustParse(g.one([]string{"5Gi", "20Gi"}))),
					// Of its own case's nodes alone: upstream takes any of several that are about a node.
					NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone, caseLabel: g.c.namespace}},
				})
			}
		}
		g.create(p)
	}
}

// ganging adds a gang, by labels alone or with a PodGroup object.
func (g *generator) ganging() {
	p := g.pod()
	p.Spec.SchedulerName = gangProfile
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(1+g.IntN(4))*250, resource.DecimalSI)
	members := 2 + g.IntN(5)
	least := members - g.IntN(2)
	name := fmt.Sprintf("g%02d", g.pods)
	if g.may(2) {
		p.Labels[gangkey.LabelOldest], p.Labels[gangkey.LabelMinAvailable] = name, strconv.Itoa(least)
	} else {
		p.Labels[gangkey.Label] = name
		g.c.groups = append(g.c.groups, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"namespace": g.c.namespace, "name": name},
			"spec":     map[string]any{"minMember": int64(least)},
		}})
	}
	switch g.IntN(6) {
	case 0:
		p.Spec.PriorityClassName = highClass
	case 1:
		g.spread(p)
	case 2:
		g.podAffinity(p)
	case 3:
		g.nodeAffinity(p)
	}
	pods := g.copies(p, members)
	if g.may(4) { // some are behind gates, which open later or never
		held := pods[:1+g.IntN(members)]
		for _, p := range held {
			hold(p)
		}
		g.create(pods...)
		for _, p := range held {
			if g.may(2) {
				g.c.steps = append(g.c.steps, step{wait: true})
			}
			if !g.may(4) {
				g.c.steps = append(g.c.steps, step{open: p.Name})
			}
		}
		return
	}
	if g.may(4) {
		first, rest := pods[:len(pods)/2], pods[len(pods)/2:]
		g.create(first...)
		g.c.steps = append(g.c.steps, step{wait: true})
		g.create(rest...)
		return
	}
	g.create(pods...)
}

// training adds pods that want datasets and GPU memory.
func (g *generator) training() {
	p := g.pod()
	p.Spec.SchedulerName = cacheProfile
	if !g.may(3) {
		p.Labels["dataset"] = g.one([]string{"imagenet", "vocab"})
	}
	if !g.may(3) {
		p.Annotations[args.PodGPUMemory] = g.one([]string{"8Gi", "12Gi", "20Gi", "60Gi"})
		if g.may(4) {
			p.Annotations[args.PodGPUDevices] = "2"
		}
	} else if g.may(2) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
	}
	g.sometimes(p)
	g.create(g.copies(p, 1+g.IntN(5))...)
}

// mixed adds a single pod of many wishes.
func (g *generator) mixed() {
	p := g.pod()
	p.Spec.SchedulerName = g.one([]string{plainProfile, plainProfile, gangProfile, cacheProfile})
	for _, wish := range []func(*corev1.Pod){g.spread, g.nodeAffinity, g.podAffinity, g.tolerate} {
		if g.may(3) {
			wish(p)
		}
	}
	p.Spec.PriorityClassName = g.one([]string{"", "", lowClass, highClass, highest})
	g.create(p)
}
