package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageProvisioner is the provisioner of the sandbox's volumes. A storage class
// that names it gets volumes that are bound to the node that the scheduler chose
// (volumeBindingMode WaitForFirstConsumer), as disks of that node would be, or to
// none (Immediate). They hold nothing, and go with their claims.
const StorageProvisioner = "sandbox.kubectl-sched.github.io/local"

// StorageClass is the default storage class of a sandbox: local volumes, made
// when the first pod that uses them is scheduled.
const StorageClass = "standard"

func (s *Sandbox) createStorageClass(ctx context.Context) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       StorageProvisioner,
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	_, err := s.clients.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class %s: %w", class.Name, err)
	}
	return nil
}
