package sandbox

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig for user, whole in one file, so that it
// can be copied anywhere on this machine.
func writeKubeconfig(file, cluster, server, user string, certificates pki) error {
	ca, err := os.ReadFile(certificates.caCert())
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(certificates.clientCert(user))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(certificates.clientKey(user))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
