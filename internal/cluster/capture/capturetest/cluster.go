package capturetest

import (
	"crypto/sha256"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// podsPerWorkload is how many pods each Deployment has, workloadsPerNamespace how
	// many Deployments each namespace.
	podsPerWorkload       = 40
	workloadsPerNamespace = 50
)

// Large makes the resources of a generated cluster: its objects have all that real
// ones have, environment, probes, statuses and managed fields included.
func Large(nodes, pods int) []Resource {
	workloads := (pods + podsPerWorkload - 1) / podsPerWorkload
	namespaces := (workloads + workloadsPerNamespace - 1) / workloadsPerNamespace
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []Resource{
		{GroupVersionKind: core.WithKind("Namespace"), Name: "namespaces", Len: namespaces, At: func(i int) runtime.Object {
			return &corev1.Namespace{ObjectMeta: metadata("namespace", "", namespaceName(i), map[string]string{corev1.LabelMetadataName: namespaceName(i)})}
		}},
		{GroupVersionKind: core.WithKind("Node"), Name: "nodes", Len: nodes, At: node},
		{GroupVersionKind: core.WithKind("Pod"), Name: "pods", Namespaced: true, Len: pods, At: func(i int) runtime.Object { return pod(i, nodes) }},
		{GroupVersionKind: apps.WithKind("Deployment"), Name: "deployments", Namespaced: true, Len: workloads, At: deployment},
		{GroupVersionKind: apps.WithKind("ReplicaSet"), Name: "replicasets", Namespaced: true, Len: workloads, At: replicaSet},
	}
}

func digest(parts ...any) []byte {
	h := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return h[:]
}

func uid(kind string, i any) types.UID {
	h := digest(kind, i)
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

var began = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func metadata(kind, namespace, name string, labels map[string]string) metav1.ObjectMeta {
	h := digest(kind, namespace, name)
	created := metav1.NewTime(began.Add(time.Duration(uint16(h[20])<<8|uint16(h[21])) * time.Minute))
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: uid(kind, namespace+"/"+name), Labels: labels, CreationTimestamp: created,
		ResourceVersion: fmt.Sprint(uint32(h[0])<<16 | uint32(h[1])), Generation: 3,
		Annotations: map[string]string{"example.com/checksum": fmt.Sprintf("%x", h), "cni.example.com/status": `[{"name":"main","interface":"eth0","ips":["10.0.0.1"],"default":true}]`},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:team":{},"f:version":{}},"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{},"f:name":{},"f:ports":{},"f:resources":{".":{},"f:limits":{},"f:requests":{}},"f:volumeMounts":{}}},"f:restartPolicy":{},"f:schedulerName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{}}}`),
		}},
	}
}

func namespaceName(i int) string { return fmt.Sprintf("team-%04d", i) }
func nodeName(i int) string      { return fmt.Sprintf("node-%05d.eu-west-1.compute.internal", i) }

func quantities(values ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(values); i += 2 {
		list[corev1.ResourceName(values[i])] = resource.MustParse(values[i+1])
	}
	return list
}

func node(i int) runtime.Object {
	pool := []string{"general", "general", "general", "memory", "gpu"}[i%5]
	n := &corev1.Node{ObjectMeta: metadata("node", "", nodeName(i), map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: fmt.Sprintf("eu-west-1%c", 'a'+i%3), corev1.LabelTopologyRegion: "eu-west-1",
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "m6i.4xlarge", "example.com/pool": pool,
	})}
	if pool == "gpu" {
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/pool", Value: pool, Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Spec.PodCIDR, n.Spec.ProviderID = "10.0.0.0/24", "aws:///eu-west-1a/i-0123456789"
	n.Status = corev1.NodeStatus{
		Capacity: quantities("cpu", "16", "memory", "64Gi", "pods", "110", "ephemeral-storage", "100Gi"), Allocatable: quantities("cpu", "15800m", "memory", "62Gi", "pods", "110", "ephemeral-storage", "90Gi"),
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OSImage: "Linux", MachineID: string(uid("machine", i))},
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: "KubeletHasNoPressure", Message: "kubelet is well", LastHeartbeatTime: metav1.NewTime(began), LastTransitionTime: metav1.NewTime(began)})
	}
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	for image := range 50 {
		name := fmt.Sprintf("registry.example.com/team/app-%d", (i*7+image*13)%400)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("%s@sha256:%x", name, digest(name)), name + ":v1"}, SizeBytes: int64(10_000_000 + image)})
	}
	return n
}

func workloadName(i int) (namespace, name string) {
	return namespaceName(i / workloadsPerNamespace), fmt.Sprintf("app-%05d", i)
}

func labels(i int) map[string]string {
	_, name := workloadName(i)
	return map[string]string{"app": name, "team": namespaceName(i / workloadsPerNamespace), "version": "v1", "pod-template-hash": fmt.Sprintf("%x", digest(i)[:5])}
}

func podSpec(i int) corev1.PodSpec {
	_, name := workloadName(i)
	env := []corev1.EnvVar{}
	for _, v := range []string{"A", "DATABASE_URL", "TOKEN", "LOG_LEVEL", "REGION"} {
		env = append(env, corev1.EnvVar{Name: v, Value: "the value of " + v})
	}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}, PeriodSeconds: 10}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: new(int64(30)),
		ServiceAccountName: name, DNSPolicy: corev1.DNSClusterFirst, Priority: new(int32(0)), PreemptionPolicy: new(corev1.PreemptLowerPriority),
		Containers: []corev1.Container{
			{
				Name: "app", Image: fmt.Sprintf("registry.example.com/team/app-%d:v1", i%400), Env: env, Args: []string{"--serve", "--verbose"}, LivenessProbe: probe, ReadinessProbe: probe,
				Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}, Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "250m", "memory", "512Mi"), Limits: quantities("memory", "512Mi")},
				VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets"}, {Name: "config", MountPath: "/config"}},
			},
			{Name: "proxy", Image: "registry.example.com/mesh/proxy:v1", Env: env, Resources: corev1.ResourceRequirements{Requests: quantities("cpu", "50m", "memory", "64Mi")}},
		},
		Volumes: []corev1.Volume{
			{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
		},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "example.com/pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"general", "memory"}}}}},
		}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		}},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		},
	}
}

func deployment(i int) runtime.Object {
	namespace, name := workloadName(i)
	d := &appsv1.Deployment{ObjectMeta: metadata("deployment", namespace, name, map[string]string{"app": name})}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: new(int32(podsPerWorkload)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(i)}, Spec: podSpec(i)},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: new(intstr.FromString("25%")), MaxSurge: new(intstr.FromString("25%")),
		}},
	}
	d.Status = appsv1.DeploymentStatus{Replicas: podsPerWorkload, ReadyReplicas: podsPerWorkload}
	return d
}

func replicaSet(i int) runtime.Object {
	namespace, name := workloadName(i)
	r := &appsv1.ReplicaSet{ObjectMeta: metadata("replicaset", namespace, replicaSetName(i), labels(i))}
	r.OwnerReferences = owner("apps/v1", "Deployment", name, uid("deployment", namespace+"/"+name))
	r.Spec = appsv1.ReplicaSetSpec{
		Replicas: new(int32(podsPerWorkload)), Selector: &metav1.LabelSelector{MatchLabels: labels(i)},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(i)}, Spec: podSpec(i)},
	}
	r.Status = appsv1.ReplicaSetStatus{Replicas: podsPerWorkload, ReadyReplicas: podsPerWorkload}
	return r
}

func replicaSetName(i int) string {
	_, name := workloadName(i)
	return name + "-" + labels(i)["pod-template-hash"]
}

func owner(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}}
}

func pod(i, nodes int) runtime.Object {
	workload := i / podsPerWorkload
	namespace, _ := workloadName(workload)
	p := &corev1.Pod{ObjectMeta: metadata("pod", namespace, fmt.Sprintf("%s-%x", replicaSetName(workload), append([]byte{byte(i % podsPerWorkload)}, digest("pod", i)[:2]...)), labels(workload))}
	p.OwnerReferences = owner("apps/v1", "ReplicaSet", replicaSetName(workload), uid("replicaset", namespace+"/"+replicaSetName(workload)))
	p.Spec = podSpec(workload)
	p.Spec.NodeName = nodeName(i * 7919 % nodes)
	at := p.CreationTimestamp
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, PodIP: "10.1.2.3", HostIP: "10.0.0.1", QOSClass: corev1.PodQOSBurstable}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, corev1.PodReadyToStartContainers} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Image: c.Image, ImageID: fmt.Sprintf("registry.example.com/x@sha256:%x", digest(c.Image)), ContainerID: fmt.Sprintf("containerd://%x", digest("c", i)),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}, AllocatedResources: c.Resources.Requests, Resources: c.Resources.DeepCopy(),
		})
	}
	return p
}
