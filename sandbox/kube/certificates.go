package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority issues the cluster's certificates. All of them are generated at the start and deleted
// with the sandbox's data.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// pair is a certificate and its key, both PEM.
type pair struct{ certificate, key []byte }

// lifetime is enough for a sandbox that runs for weeks. backdated allows a clock that is set back a little.
const (
	lifetime  = 365 * 24 * time.Hour
	backdated = time.Hour
)

func newAuthority() (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sandbox-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{}
	issued, err := a.issue(template)
	if err != nil {
		return nil, err
	}
	a.pem = issued.certificate
	return a, nil
}

// server issues the API server's certificate.
func (a *authority) server() (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 100, 0, 1)},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
	})
}

// client issues a user's certificate. The API server reads the name and the groups from it.
func (a *authority) client(name string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issue signs a certificate with the authority's key, or with its own key if the authority does not exist yet.
func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s: generate key: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s: serial number: %w", template.Subject.CommonName, err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-backdated), time.Now().Add(lifetime)
	if a.key == nil {
		a.certificate, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s: sign: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s: encode key: %w", template.Subject.CommonName, err)
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), encoded}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write writes files into a folder that only its owner may read.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
