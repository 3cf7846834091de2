package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long certificates hold: longer than any sandbox lives.
const validity = 10 * 365 * 24 * time.Hour

// pki is the folder of a sandbox's certificates and keys, all signed by one
// authority of its own. It is a value with a method a path.
type pki string

func (p pki) file(name string) string { return filepath.Join(string(p), name) }

func (p pki) caCert() string         { return p.file("ca.crt") }
func (p pki) caKey() string          { return p.file("ca.key") }
func (p pki) serverCert() string     { return p.file("server.crt") }
func (p pki) serverKey() string      { return p.file("server.key") }
func (p pki) serviceAccount() string { return p.file("service-account.key") }

func (p pki) clientCert(user string) string { return p.file(user + ".crt") }
func (p pki) clientKey(user string) string  { return p.file(user + ".key") }

// The users of client certificates, by file name.
const (
	adminUser             = "admin"
	kwokUser              = "kwok"
	etcdClientUser        = "etcd-client"
	controllerManagerUser = "kube-controller-manager"
	schedulerUser         = "kube-scheduler"
)

// subjects maps each user to the name and groups that the API server sees.
func subjects() map[string]pkix.Name {
	return map[string]pkix.Name{
		adminUser: {CommonName: "sandbox-admin", Organization: []string{"system:masters"}},
		// kwok writes the status of everything, as a crowd of kubelets would.
		kwokUser:              {CommonName: "kwok", Organization: []string{"system:masters"}},
		etcdClientUser:        {CommonName: "kube-apiserver"},
		controllerManagerUser: {CommonName: "system:kube-controller-manager"},
		schedulerUser:         {CommonName: "system:kube-scheduler"},
	}
}

// ensure creates every certificate and key, unless the folder holds them from an
// earlier run. services is the network whose first address is the API server's
// own Service.
func (p pki) ensure(services *net.IPNet) error {
	// The service account key is written last: it is there when all are.
	if _, err := os.Stat(p.serviceAccount()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return err
	}
	authority, err := p.newAuthority()
	if err != nil {
		return fmt.Errorf("create certificate authority: %w", err)
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, // etcd is a client of itself
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), firstAddress(services)},
	}
	if err := authority.issue(server, p.serverCert(), p.serverKey()); err != nil {
		return fmt.Errorf("issue server certificate: %w", err)
	}
	for user, subject := range subjects() {
		client := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if err := authority.issue(client, p.clientCert(user), p.clientKey(user)); err != nil {
			return fmt.Errorf("issue certificate of %s: %w", user, err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("create service account key: %w", err)
	}
	return writeKey(p.serviceAccount(), key)
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (p pki) newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sandbox-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{cert: template, key: key}
	if err := a.issue(template, p.caCert(), ""); err != nil {
		return nil, err
	}
	return a, writeKey(p.caKey(), key)
}

// issue signs template and writes the certificate, and a key made for it. With
// an empty keyFile the certificate is the authority's own.
func (a *authority) issue(template *x509.Certificate, certFile, keyFile string) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks of containers may lag
	template.NotAfter = time.Now().Add(validity)
	key := a.key
	if keyFile != "" {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
		if err := writeKey(keyFile, key); err != nil {
			return err
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	return writePEM(certFile, "CERTIFICATE", der)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// firstAddress returns the first usable address of network.
func firstAddress(network *net.IPNet) net.IP {
	ip := append(net.IP(nil), network.IP...)
	ip[len(ip)-1]++
	return ip
}
