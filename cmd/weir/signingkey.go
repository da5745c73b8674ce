package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/store/ledger"
)

// signingKeyFile is where the key of a private database's log is kept.
const signingKeyFile = "signing.key"

// loadSigningKeys reads the keys that sign the log, exports and admissions. Only the
// owner and the group may be able to read the files, and only the owner to write them:
// a secret that Kubernetes mounts is readable by the pod's group.
func loadSigningKeys(paths []string) ([]ledger.Signer, error) {
	keys := make([]ledger.Signer, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		if info.Mode().Perm()&0o027 != 0 {
			return nil, fmt.Errorf("signing key %s: others can read it or its group can write it; run chmod 600 on it", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		key, err := ledger.ParseKey(data)
		if err != nil {
			return nil, fmt.Errorf("signing key %s: %w", path, err)
		}
		keys[i] = key
	}
	return keys, nil
}

// ensureSigningKey gives the key file of a private database, made if it is not
// there, with the public key beside it.
func ensureSigningKey(dir string) (string, error) {
	path := filepath.Join(dir, signingKeyFile)
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	open, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}), 0o644); err != nil {
		return "", err
	}
	// By renaming: half a file would look like a key that is there.
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// loadPublicKeys reads the public keys of PEM files.
func loadPublicKeys(paths []string) (keys []ledger.PublicKey, err error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("public key: %w", err)
		}
		key, err := ledger.ParsePublicKey(data)
		if err != nil {
			return nil, fmt.Errorf("public key %s: %w", path, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
