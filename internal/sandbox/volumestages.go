package sandbox

import "strings"

// volumeProvision makes the volume of a claim. The annotations are those by which
// the volume controller asks a provisioner of the world outside: it names the
// provisioner once the claim is due, which for WaitForFirstConsumer is when the
// scheduler has chosen a node. The same controller then binds the two.
//
// The volume is pinned by the hostname label, which kwok cannot look up: it takes
// the node's name for it, as it is on all nodes that do not say otherwise.
func volumeProvision() (stage, error) {
	return parseStage(strings.ReplaceAll(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: volume-provision
spec:
  resourceRef: {apiGroup: v1, kind: PersistentVolumeClaim}
  selector:
    matchExpressions:
    - {key: '.metadata.annotations["volume.kubernetes.io/storage-provisioner"]', operator: In, values: [PROVISIONER]}
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .spec.volumeName, operator: DoesNotExist}
  steps:
  - apply:
      template: |
        apiVersion: v1
        kind: PersistentVolume
        metadata:
          name: pvc-{{ .metadata.uid }}
          annotations:
            pv.kubernetes.io/provisioned-by: PROVISIONER
        spec:
          accessModes:
          {{ YAML .spec.accessModes 2 }}
          capacity:
            storage: {{ .spec.resources.requests.storage | Quote }}
          persistentVolumeReclaimPolicy: Delete
          storageClassName: {{ .spec.storageClassName | Quote }}
          volumeMode: {{ or .spec.volumeMode "Filesystem" | Quote }}
          claimRef:
            apiVersion: v1
            kind: PersistentVolumeClaim
            name: {{ .metadata.name | Quote }}
            namespace: {{ .metadata.namespace | Quote }}
            uid: {{ .metadata.uid | Quote }}
          hostPath:
            path: /nonexistent/sandbox-volume
          {{ with index .metadata.annotations "volume.kubernetes.io/selected-node" }}
          nodeAffinity:
            required:
              nodeSelectorTerms:
              - matchExpressions:
                - key: kubernetes.io/hostname
                  operator: In
                  values:
                  - {{ . | Quote }}
          {{ end }}
`, "PROVISIONER", StorageProvisioner))
}

// volumeDelete removes a volume whose claim is gone, as its provisioner would.
func volumeDelete() (stage, error) {
	return parseStage(strings.ReplaceAll(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: volume-delete
spec:
  resourceRef: {apiGroup: v1, kind: PersistentVolume}
  selector:
    matchExpressions:
    - {key: '.metadata.annotations["pv.kubernetes.io/provisioned-by"]', operator: In, values: [PROVISIONER]}
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .spec.persistentVolumeReclaimPolicy, operator: In, values: [Delete]}
    - {key: .status.phase, operator: In, values: [Released]}
  steps:
  - delete: true
`, "PROVISIONER", StorageProvisioner))
}
