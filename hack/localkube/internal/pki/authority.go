// Package pki makes the keys, certificates and kubeconfigs of a cluster. All of
// them are made anew each time a cluster is started.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is how long certificates hold. Clusters live for days at most.
const validity = 365 * 24 * time.Hour

// skew is how far a clock that is set back may lag behind.
const skew = time.Hour

// pair is a certificate and its key in PEM.
type pair struct {
	cert, key []byte
}

// authority signs certificates.
type authority struct {
	pair
	parsed *x509.Certificate
	signer crypto.Signer
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of authority %s: %w", name, err)
	}
	number, err := serial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          number,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-skew),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing authority %s: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading authority %s back: %w", name, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &authority{pair: pair{cert: encodeCert(der), key: encoded}, parsed: parsed, signer: key}, nil
}

// subject says whom a certificate is for.
type subject struct {
	// name is the user, groups its organizations.
	name   string
	groups []string
	// hosts are DNS names and IP addresses it may serve under.
	hosts []string
}

func (a *authority) issue(to subject) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the key of %s: %w", to.name, err)
	}
	number, err := serial()
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: number,
		Subject:      pkix.Name{CommonName: to.name, Organization: to.groups},
		NotBefore:    time.Now().Add(-skew),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, host := range to.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, key.Public(), a.signer)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", to.name, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: encodeCert(der), key: encoded}, nil
}

func serial() (*big.Int, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	return number, nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
