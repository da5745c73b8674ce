package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/cmd/weir/access"
	"weir/cmd/weir/certificate"
	"weir/review"
	"weir/webhooks"
)

// deployment is the declared part of a set-up: who may review what, who is told,
// and whose tokens count.
type deployment struct {
	people    *review.People
	access    *access.Access
	policies  *review.Policies
	endpoints []webhooks.Endpoint
}

func loadDeployment(dir string, log *slog.Logger) (*deployment, error) {
	read := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%w; --config names the directory with people.yaml and policies.yaml, deploy/example has one to start from", err)
		}
		return data, nil
	}
	data, err := read("people.yaml")
	if err != nil {
		return nil, err
	}
	d := &deployment{}
	if d.people, err = review.LoadPeople(filepath.Join(dir, "people.yaml"), data); err != nil {
		return nil, err
	}
	if d.access, err = access.Load(dir, d.people, access.Config{Log: log}); err != nil {
		return nil, err
	}
	if data, err = read("policies.yaml"); err != nil {
		return nil, err
	}
	if d.policies, err = review.LoadPolicies(filepath.Join(dir, "policies.yaml"), data, d.people); err != nil {
		return nil, err
	}
	for _, e := range d.policies.Endpoints() {
		resolved, err := (&secretFiles{dir}).endpoint(e)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.ID, err)
		}
		if resolved, err = resolved.Normalise(); err != nil {
			return nil, err
		}
		d.endpoints = append(d.endpoints, resolved)
	}
	return d, nil
}

// secretFiles resolves what declarations refer to; a relative file is beside
// policies.yaml.
type secretFiles struct{ dir string }

func (f *secretFiles) endpoint(e review.Endpoint) (out webhooks.Endpoint, err error) {
	out = webhooks.Endpoint{ID: e.ID, URL: e.URL, Timeout: time.Duration(e.Timeout), AllowHTTP: e.AllowHTTP, AllowPrivate: e.AllowPrivate,
		MaxInFlight: e.MaxInFlight, Format: webhooks.Format(e.Format), Types: e.Types}
	for _, s := range e.AllSecrets() {
		key, err := f.secret("secret", s.File, s.Env)
		if err != nil {
			return out, err
		}
		out.Secrets = append(out.Secrets, webhooks.Secret{Key: key, ExpiresAt: s.Until})
	}
	if e.BearerFile != "" || e.BearerEnv != "" {
		if out.Bearer.Key, err = f.secret("bearer", e.BearerFile, e.BearerEnv); err != nil {
			return out, err
		}
		if out.Bearer.Key == "" {
			return out, fmt.Errorf("bearer_file: is empty")
		}
	}
	if e.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(beside(f.dir, e.CertFile), beside(f.dir, e.KeyFile))
		if err != nil {
			return out, fmt.Errorf("cert_file and key_file: %w", err)
		}
		out.Certificate = &cert
	}
	if e.CAFile != "" {
		if out.RootCAs, err = certificate.Pool(beside(f.dir, e.CAFile)); err != nil {
			return out, fmt.Errorf("ca_file: %w", err)
		}
	}
	return out, nil
}

func (f *secretFiles) secret(what, file, env string) (string, error) {
	if env != "" {
		if v := os.Getenv(env); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable %s that %s_env names is not set", env, what)
	}
	data, err := os.ReadFile(beside(f.dir, file))
	if err != nil {
		return "", fmt.Errorf("%s_file: %w", what, err)
	}
	return strings.TrimSpace(string(data)), nil
}
