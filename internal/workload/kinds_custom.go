package workload

// customKinds are the custom kinds that we know. What each can carry is what
// its CustomResourceDefinition has; a field that only some released versions
// have is left out, and a user who has it says so under "kinds".
//
// Read were, in August 2026: Strimzi 1.3 (and v1beta2 of it, which still had
// ZooKeeper), KubeRay's ray.io/v1, JobSet's v1alpha2, LeaderWorkerSet's v1,
// mpi-operator's v2beta1, postgres-operator 2.0 of Zalando, and Kubeflow
// Trainer's v1alpha1. Not here are Trainer's TrainJob, whose placement is in
// patches of which each manager has its own, and ClusterTrainingRuntime, which
// is in no namespace.
func customKinds() []kindRow {
	var rows []kindRow
	rows = append(rows, rolloutKinds()...)
	rows = append(rows, batchKinds()...)
	rows = append(rows, dataKinds()...)
	rows = append(rows, monitoringKinds()...)
	return append(rows, pipelineKinds()...)
}

func rolloutKinds() []kindRow {
	return []kindRow{
		{names: inGroup("argoproj.io", "Rollout"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector", revision: "rollouts-pod-template-hash"},
		{names: inGroup("apps.kruise.io", "CloneSet", "StatefulSet"), templates: one("spec.template.spec"), replicas: "spec.replicas", selector: "spec.selector", revision: controllerRevisionHash},
		{names: inGroup("apps.kruise.io", "DaemonSet"), templates: one("spec.template.spec"), selector: "spec.selector", revision: controllerRevisionHash},
		{
			names:     inGroup("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
			templates: []templateRow{{sort: "leader", spec: "spec.leaderWorkerTemplate.leaderTemplate.spec"}, {sort: "worker", spec: "spec.leaderWorkerTemplate.workerTemplate.spec"}},
			podLabels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "{name}"},
			revision:  "leaderworkerset.sigs.k8s.io/template-revision-hash",
		},
		{
			// Knative takes these only where the operator has switched them on.
			names: inGroup("serving.knative.dev", "Service"),
			templates: []templateRow{{
				labels: "spec.template.metadata.labels", when: "spec.template",
				fields: below("spec.template.spec", NodeSelector, Affinity, Tolerations, SpreadConstraints, PriorityClassName, SchedulerName),
			}},
			podLabels: map[string]string{"serving.knative.dev/service": "{name}"},
		},
	}
}

func batchKinds() []kindRow {
	rows := []kindRow{
		{
			names: inGroup("jobset.x-k8s.io", "JobSet"), templates: one("spec.replicatedJobs[*name].template.spec.template.spec"), immutable: true,
			podLabels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "{name}", "jobset.sigs.k8s.io/replicatedjob-name": "{template}"},
		},
		{names: inGroup("trainer.kubeflow.org", "TrainingRuntime"), templates: one("spec.template.spec.replicatedJobs[*name].template.spec.template.spec")},
		{
			names: inGroup("batch.volcano.sh", "Job"), templates: one("spec.tasks[*name].template.spec"), immutable: true,
			podLabels: map[string]string{"volcano.sh/job-name": "{name}", "volcano.sh/task-spec": "{template}"},
		},
		{
			names: inGroup("ray.io", "RayCluster"), templates: ray("spec"),
			podLabels: map[string]string{"ray.io/cluster": "{name}"},
		},
		{
			names:     inGroup("ray.io", "RayJob"),
			templates: append(ray("spec.rayClusterSpec"), templateRow{sort: "submitter", spec: "spec.submitterPodTemplate.spec"}),
		},
		{
			names:     inGroup("ray.io", "RayCronJob"),
			templates: append(ray("spec.jobTemplate.rayClusterSpec"), templateRow{sort: "submitter", spec: "spec.jobTemplate.submitterPodTemplate.spec"}),
		},
		{names: inGroup("ray.io", "RayService"), templates: ray("spec.rayClusterConfig")},
		{
			// The operator of v2beta1 tells launcher and workers apart by another
			// label than the one of v1, so that neither is sure to be there.
			names: inGroup("kubeflow.org", "MPIJob"), templates: one("spec.mpiReplicaSpecs.*.template.spec"), immutable: true,
			podLabels: map[string]string{"training.kubeflow.org/job-name": "{name}"},
		},
	}
	for kind, field := range map[string]string{
		"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "XGBoostJob": "xgbReplicaSpecs",
		"PaddleJob": "paddleReplicaSpecs", "JAXJob": "jaxReplicaSpecs", "MXJob": "mxReplicaSpecs",
	} {
		rows = append(rows, kindRow{
			names: inGroup("kubeflow.org", kind), templates: one("spec." + field + ".*.template.spec"), immutable: true,
			podLabels: map[string]string{"training.kubeflow.org/job-name": "{name}", "training.kubeflow.org/replica-type": "{template:lower}"},
		})
	}
	return rows
}

// ray is the head and the worker groups of a Ray cluster.
func ray(prefix string) []templateRow {
	return []templateRow{
		{sort: "head", spec: prefix + ".headGroupSpec.template.spec"},
		{sort: "worker", spec: prefix + ".workerGroupSpecs[*groupName].template.spec"},
	}
}

// strimzi is the pod template of one component: Strimzi has no nodeSelector.
func strimzi(sort, component string) templateRow {
	pod := component + ".template.pod"
	return templateRow{
		sort: sort, when: component, labels: pod + ".metadata.labels",
		fields: below(pod, Affinity, Tolerations, SpreadConstraints, PriorityClassName, SchedulerName),
	}
}

func dataKinds() []kindRow {
	return []kindRow{
		{
			names: inGroup("kafka.strimzi.io", "Kafka"),
			templates: []templateRow{
				strimzi("kafka", "spec.kafka"), strimzi("zookeeper", "spec.zookeeper"), strimzi("entityOperator", "spec.entityOperator"),
				strimzi("cruiseControl", "spec.cruiseControl"), strimzi("kafkaExporter", "spec.kafkaExporter"),
			},
			podLabels: map[string]string{"strimzi.io/cluster": "{name}", "strimzi.io/kind": "Kafka"},
		},
		{
			names: inGroup("kafka.strimzi.io", "KafkaNodePool"), templates: []templateRow{strimzi("", "spec")}, replicas: "spec.replicas",
			podLabels: map[string]string{"strimzi.io/pool-name": "{name}", "strimzi.io/cluster": "{label:strimzi.io/cluster}", "strimzi.io/kind": "Kafka"},
		},
		{
			names: inGroup("kafka.strimzi.io", "KafkaConnect", "KafkaMirrorMaker2", "KafkaBridge"), templates: []templateRow{strimzi("", "spec")}, replicas: "spec.replicas",
			podLabels: map[string]string{"strimzi.io/cluster": "{name}"},
		},
		{
			// Its affinity is a shape of its own, which has all of ours in it.
			names: inGroup("postgresql.cnpg.io", "Cluster"), replicas: "spec.instances",
			templates: []templateRow{{
				when: "spec", labels: "spec.inheritedMetadata.labels",
				fields: map[Field]string{
					NodeSelector: "spec.affinity.nodeSelector", Tolerations: "spec.affinity.tolerations", Affinity: "spec.affinity",
					NodeAffinity: "spec.affinity.nodeAffinity", PodAffinity: "spec.affinity.additionalPodAffinity", PodAntiAffinity: "spec.affinity.additionalPodAntiAffinity",
					SpreadConstraints: "spec.topologySpreadConstraints", PriorityClassName: "spec.priorityClassName", SchedulerName: "spec.schedulerName",
				},
			}},
			podLabels: map[string]string{"cnpg.io/cluster": "{name}"},
		},
		{names: inGroup("postgresql.cnpg.io", "Pooler"), templates: one("spec.template.spec"), replicas: "spec.instances", podLabels: map[string]string{"cnpg.io/poolerName": "{name}"}},
		{
			names: inGroup("acid.zalan.do", "postgresql"), replicas: "spec.numberOfInstances",
			templates: []templateRow{{
				when: "spec",
				fields: at(at(at(below("spec", Tolerations, SpreadConstraints, SchedulerName),
					PriorityClassName, "spec.podPriorityClassName"), Affinity, "spec.nodeAffinity"), NodeAffinity, "spec.nodeAffinity"),
			}},
			podLabels: map[string]string{"cluster-name": "{name}", "application": "spilo"},
		},
		{
			names:     inGroup("elasticsearch.k8s.elastic.co", "Elasticsearch"),
			templates: []templateRow{{spec: "spec.nodeSets[*name].podTemplate.spec", when: "spec.nodeSets[*name]"}},
			podLabels: map[string]string{"elasticsearch.k8s.elastic.co/cluster-name": "{name}", "elasticsearch.k8s.elastic.co/statefulset-name": "{name}-es-{template}"},
		},
		{
			names:     inGroup("kibana.k8s.elastic.co", "Kibana"),
			templates: []templateRow{{spec: "spec.podTemplate.spec", when: "spec"}}, replicas: "spec.count",
			podLabels: map[string]string{"kibana.k8s.elastic.co/name": "{name}"},
		},
		{
			names: inGroup("opensearch.opster.io", "OpenSearchCluster"),
			templates: []templateRow{{
				when:   "spec.nodePools[*component]",
				labels: "spec.nodePools[*component].labels",
				fields: below("spec.nodePools[*component]", NodeSelector, Affinity, Tolerations, SpreadConstraints, PriorityClassName),
			}},
			podLabels: map[string]string{"opster.io/opensearch-cluster": "{name}", "opster.io/opensearch-nodepool": "{template}"},
		},
	}
}

func monitoringKinds() []kindRow {
	pods := []templateRow{{
		when: "spec", labels: "spec.podMetadata.labels",
		fields: below("spec", NodeSelector, Affinity, Tolerations, SpreadConstraints, PriorityClassName),
	}}
	rows := []kindRow{}
	for kind, label := range map[string]string{"Prometheus": "prometheus", "PrometheusAgent": "prometheus-agent", "Alertmanager": "alertmanager", "ThanosRuler": "thanos-ruler"} {
		rows = append(rows, kindRow{
			names: inGroup("monitoring.coreos.com", kind), templates: pods, replicas: "spec.replicas",
			podLabels: map[string]string{"app.kubernetes.io/name": label, "app.kubernetes.io/instance": "{name}", "app.kubernetes.io/managed-by": "prometheus-operator"},
		})
	}
	return rows
}

func pipelineKinds() []kindRow {
	tekton := []Field{NodeSelector, Affinity, Tolerations, SpreadConstraints, PriorityClassName, SchedulerName}
	workflow := func(prefix string) []templateRow {
		return []templateRow{{
			when: prefix, labels: prefix + ".podMetadata.labels",
			fields: at(below(prefix, NodeSelector, Affinity, Tolerations, SchedulerName), PriorityClassName, prefix+".podPriorityClassName"),
		}}
	}
	return []kindRow{
		{names: inGroup("tekton.dev", "TaskRun"), immutable: true, templates: []templateRow{{when: "spec", fields: below("spec.podTemplate", tekton...)}}, podLabels: map[string]string{"tekton.dev/taskRun": "{name}"}},
		{names: inGroup("tekton.dev", "PipelineRun"), immutable: true, templates: []templateRow{{when: "spec", fields: below("spec.taskRunTemplate.podTemplate", tekton...)}}, podLabels: map[string]string{"tekton.dev/pipelineRun": "{name}"}},
		{names: inGroup("argoproj.io", "Workflow"), immutable: true, templates: workflow("spec"), podLabels: map[string]string{"workflows.argoproj.io/workflow": "{name}"}},
		{names: inGroup("argoproj.io", "CronWorkflow"), templates: workflow("spec.workflowSpec"), run: "workflows.argoproj.io/workflow"},
	}
}
