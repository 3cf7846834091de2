package workload

// count returns how many pods a template has at a time, where the object says so:
// the replicas of whatever makes them, or how many a Job runs in parallel. Nil
// where it does not say, as with a DaemonSet or where something scales it.
func count(w *Workload, t *Template) *int32 {
	o, spec := w.Object, t.PodSpec
	above := func(n int, field string) Path { return spec[:max(0, len(spec)-n)].join(field) }
	switch (GroupKind{w.Group, w.Kind}) {
	case GroupKind{"", "Pod"}:
		return new(int32(1))
	case GroupKind{"", "ReplicationController"}, GroupKind{"apps", "ReplicaSet"}, GroupKind{"apps", "Deployment"},
		GroupKind{"apps", "StatefulSet"}, GroupKind{"argoproj.io", "Rollout"}, GroupKind{"apps.kruise.io", "CloneSet"},
		GroupKind{"apps.kruise.io", "StatefulSet"}:
		return number(o, Path{"spec", "replicas"}, 1)
	case GroupKind{"batch", "Job"}, GroupKind{"batch", "CronJob"}:
		return parallel(o, spec)
	case GroupKind{"jobset.x-k8s.io", "JobSet"}:
		return times(parallel(o, spec), number(o, above(4, "replicas"), 1))
	case GroupKind{"kubeflow.org", "PyTorchJob"}, GroupKind{"kubeflow.org", "TFJob"}, GroupKind{"kubeflow.org", "XGBoostJob"},
		GroupKind{"kubeflow.org", "PaddleJob"}, GroupKind{"kubeflow.org", "JAXJob"}, GroupKind{"kubeflow.org", "MXJob"},
		GroupKind{"kubeflow.org", "MPIJob"}:
		return number(o, above(2, "replicas"), 1)
	case GroupKind{"batch.volcano.sh", "Job"}:
		return number(o, above(2, "replicas"), -1)
	case GroupKind{"leaderworkerset.x-k8s.io", "LeaderWorkerSet"}:
		return leaderWorkers(o, t.Name)
	case GroupKind{"ray.io", "RayCluster"}:
		if t.Name == "head" {
			return new(int32(1))
		}
		return times(number(o, above(2, "replicas"), -1), number(o, above(2, "numOfHosts"), 1))
	}
	return nil
}

// number returns the whole number at the path, or the API's default; nil where
// there is neither, which a negative default says.
func number(object map[string]any, path Path, otherwise int32) *int32 {
	if _, there := Lookup(object, path...); there {
		if n, ok := lookupInt(object, path); ok {
			return &n
		}
		return nil
	}
	if otherwise < 0 {
		return nil
	}
	return &otherwise
}

// parallel is how many pods the Job around a pod spec runs at a time: no more than
// are to complete.
func parallel(object map[string]any, spec Path) *int32 {
	job := spec[:len(spec)-2]
	n := number(object, job.join("parallelism"), 1)
	if completions, ok := lookupInt(object, job.join("completions")); ok && n != nil {
		return new(min(*n, completions))
	}
	return n
}

// leaderWorkers counts the pods of a LeaderWorkerSet: each of its groups has a
// leader, of the leader's template if there is one, and the rest are workers.
func leaderWorkers(object map[string]any, template string) *int32 {
	size := number(object, Path{"spec", "leaderWorkerTemplate", "size"}, 1)
	if size == nil {
		return nil
	}
	_, hasLeader := Lookup(object, "spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
	each := *size
	switch {
	case template == "leader":
		each = 1
	case hasLeader:
		each = *size - 1
	}
	return times(number(object, Path{"spec", "replicas"}, 1), &each)
}

// times multiplies what is known.
func times(a, b *int32) *int32 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a * *b)
}
