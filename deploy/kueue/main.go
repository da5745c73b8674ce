// Command kueue makes weir an admission check of Kueue: a workload that has its
// quota starts only when the gate admits its job. It is a module of its own, so
// that Kueue and controller-runtime are no dependencies of the gate.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "weir-kueue:", err)
		os.Exit(1)
	}
}

func run() error {
	var files gateFiles
	url := flag.String("gate", "https://weir.weir.svc/hooks/kubernetes/validate", "the gate's admission webhook")
	flag.StringVar(&files.ca, "gate-ca", "/etc/weir-kueue/ca.crt", "CA of the gate's certificate, in PEM")
	flag.StringVar(&files.cert, "cert", "/etc/weir-kueue/tls.crt", "client certificate that the gate knows, in PEM")
	flag.StringVar(&files.key, "key", "/etc/weir-kueue/tls.key", "key of that certificate")
	retry := flag.Duration("retry-after", 5*time.Minute, "how long a workload waits that people have to decide about")
	again := flag.Duration("retry-unavailable", 30*time.Second, "how long a workload waits when the gate did not answer")
	leader := flag.Bool("leader-elect", true, "only one of several replicas works")
	namespace := flag.String("namespace", os.Getenv("POD_NAMESPACE"), "where the leader's lease is kept")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))

	g, err := newGate(*url, files)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := manager.New(cfg, manager.Options{Scheme: scheme, LeaderElection: *leader, LeaderElectionID: "weir-kueue",
		LeaderElectionNamespace: *namespace, HealthProbeBindAddress: ":8081", Metrics: server.Options{BindAddress: ":8080"}})
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("livez", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	w := &workloads{client: mgr.GetClient(), reader: mgr.GetAPIReader(), gate: g, now: time.Now, retry: *retry, again: *again}
	if err := ctrl.NewControllerManagedBy(mgr).Named("weir-workloads").For(&kueue.Workload{}).Complete(w); err != nil {
		return err
	}
	c := &checks{client: mgr.GetClient(), now: time.Now}
	if err := ctrl.NewControllerManagedBy(mgr).Named("weir-checks").For(&kueue.AdmissionCheck{}).Complete(c); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, kueue.AddToScheme(scheme)
}
