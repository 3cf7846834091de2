package e2e

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// writeKubeconfig writes the configuration as a kubeconfig.
func writeKubeconfig(path string, config *rest.Config, namespace string) error {
	const name = "e2e"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: namespace}},
		CurrentContext: name,
	}, path)
}

// grants are the rights of a restricted user.
type grants struct {
	// Namespace are the rights in the test's namespace, Cluster those in all.
	Namespace []rbacv1.PolicyRule `json:"namespace"`
	Cluster   []rbacv1.PolicyRule `json:"cluster"`
}

// restricted makes a service account in the client's namespace with the rights
// that the YAML text grants, and returns the configuration to act as it.
func (c *client) restricted(ctx context.Context, config *rest.Config, name string, text []byte) (*rest.Config, error) {
	var rights grants
	if err := yaml.UnmarshalStrict(text, &rights); err != nil {
		return nil, fmt.Errorf("rights of %s: %w", name, err)
	}
	metadata := metav1.ObjectMeta{Name: name, Namespace: c.namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.namespace}}
	accounts := c.kube.CoreV1().ServiceAccounts(c.namespace)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metadata}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	rbac := c.kube.RbacV1()
	if _, err := rbac.Roles(c.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metadata, Rules: rights.Namespace}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := rbac.RoleBindings(c.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metadata, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	everywhere := metav1.ObjectMeta{Name: c.namespace + "-" + name}
	if _, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: rights.Cluster}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: everywhere, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere.Name},
	}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	restricted := rest.AnonymousClientConfig(config)
	restricted.BearerToken = token.Status.Token
	return restricted, nil
}
