package sandboxtest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// patience is how long a controller may take to give a new namespace its service
// account.
const patience = time.Minute

// MakeNamespace makes a namespace and returns when pods can be created in it: a
// controller has given it its service account by then. The error says which
// namespace, and what the API server said last.
func MakeNamespace(ctx context.Context, client kubernetes.Interface, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s has no service account (%w): %w", name, err, last)
	}
	return nil
}
