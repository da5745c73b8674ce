// Package kubernetes holds manifests and the tests of them and of the Helm chart.
// It is a module of its own, so that Helm and the Kubernetes types are no
// dependencies of the gate.
package kubernetes
