// Package operations tests what this directory's neighbours give to operators: the
// compose file, the dashboard and the alerts. It is a module of its own, as the
// parsers of Prometheus, Grafana and Compose are larger than weir.
package operations
