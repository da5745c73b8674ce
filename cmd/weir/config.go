package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/review"
	"weir/webhooks"
)

// deployment is the declared part of a set-up: who may review what, and who is told.
type deployment struct {
	people    *review.People
	policies  *review.Policies
	endpoints []webhooks.Endpoint
}

// configDir is where people.yaml and policies.yaml are, unless --config says otherwise.
func configDir(flag string) string {
	return cmp.Or(flag, os.Getenv("WEIR_CONFIG"), "/etc/weir")
}

func loadDeployment(dir string) (*deployment, error) {
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
	if data, err = read("policies.yaml"); err != nil {
		return nil, err
	}
	if d.policies, err = review.LoadPolicies(filepath.Join(dir, "policies.yaml"), data, d.people); err != nil {
		return nil, err
	}
	for _, e := range d.policies.Endpoints() {
		secret, err := readSecret(dir, e)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.ID, err)
		}
		endpoint, err := (webhooks.Endpoint{ID: e.ID, URL: e.URL, Secrets: []webhooks.Secret{{Key: secret}},
			Timeout: time.Duration(e.Timeout), AllowHTTP: e.AllowHTTP, AllowPrivate: e.AllowPrivate}).Normalise()
		if err != nil {
			return nil, err
		}
		d.endpoints = append(d.endpoints, endpoint)
	}
	return d, nil
}

// readSecret resolves a declared secret; a relative file is beside policies.yaml.
func readSecret(dir string, e review.Endpoint) (string, error) {
	if e.SecretEnv != "" {
		if v := os.Getenv(e.SecretEnv); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable %s that secret_env names is not set", e.SecretEnv)
	}
	path := e.SecretFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("secret_file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
