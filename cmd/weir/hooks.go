package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/certificate"
	"weir/cmd/weir/kubernetes"
	"weir/review"
)

// hookOptions are the flags of the Kubernetes hook, which has a listener of its
// own: whoever reaches it is asked for a certificate and not for a key.
type hookOptions struct {
	listen string
	tls    certificate.Files
	config kubernetes.Config
}

func (o *hookOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.listen, "hooks-listen", "", "address for the Kubernetes admission webhook, for example :8443 (default: there is none)")
	f.StringVar(&o.tls.Cert, "hooks-cert", "", "certificate of the webhook, in PEM; read again when it is renewed")
	f.StringVar(&o.tls.Key, "hooks-key", "", "key of that certificate")
	f.StringVar(&o.tls.ClientCA, "hooks-client-ca", "", "CA of the API server's client certificate, in PEM")
	f.StringSliceVar(&o.tls.ClientNames, "hooks-client-names", nil, "common or DNS names that client certificates may have (default: all that the CA signed)")
	f.StringVar(&o.config.Service, "hooks-service", "", "service of people.yaml that submits for the cluster")
	f.StringVar(&o.config.Project, "hooks-project", "default", "project that the cluster's runs are kept in")
	f.StringSliceVar(&o.config.Controllers, "hooks-controllers", nil, "user names of controllers that make gated objects out of gated ones, as the trainer does")
}

// newKubernetes helps people who write manifests.
func newKubernetes() *cobra.Command {
	cmd := group("kubernetes", "Look at manifests as the Kubernetes hook does")
	cmd.AddCommand(&cobra.Command{
		Use:   "spec MANIFEST",
		Short: "Print the spec that would be screened for a manifest",
		Long: "Prints the training spec of a manifest (a file, or - for standard input) together\n" +
			"with the workload that the hook adds to it, for weir check --offline. The API\n" +
			"server fills in defaults, so the digest of the real one differs.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifest, err := readInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return exitWith(exitUsage, err)
			}
			spec, err := kubernetes.ManifestSpec(args[0], manifest)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			_, err = cmd.OutOrStdout().Write(spec)
			return err
		},
	})
	return cmd
}

// given reports whether there is to be a hook. Half of one is an error.
func (o *hookOptions) given() (bool, error) {
	if o.listen != "" {
		return true, nil
	}
	if o.tls.Cert != "" || o.tls.Key != "" || o.tls.ClientCA != "" || o.config.Service != "" {
		return false, errors.New("the Kubernetes hook has no address; give --hooks-listen, or none of the --hooks flags")
	}
	return false, nil
}

// check reads what there is to be read before a start. Of people that could not be
// read, which are nil, the service is not looked for.
func (o *hookOptions) check(people *review.People) error {
	given, err := o.given()
	if err != nil || !given {
		return err
	}
	if err := kubernetes.CheckFiles(o.tls); err != nil || people == nil {
		return err
	}
	return kubernetes.CheckService(people, o.config.Service)
}

func (o *hookOptions) describe() string {
	if o.listen == "" {
		return "none"
	}
	return "certificate, key and client CA can be read; submits as " + o.config.Service
}

// hook is the running webhook. Its zero value is none.
type hook struct{ web *http.Server }

// startHook begins to answer the API server. failed gets the error of a listener that ends.
func startHook(o hookOptions, desk *review.Desk, traces *tracing, failed chan<- error, log *slog.Logger) (*hook, error) {
	given, err := o.given()
	if err != nil || !given {
		return &hook{}, err
	}
	o.config.Log = log
	handler, err := kubernetes.New(desk, o.config)
	if err != nil {
		return nil, err
	}
	web, err := kubernetes.Server(handler, o.tls)
	if err != nil {
		return nil, err
	}
	web.Handler = traces.handler("kubernetes hook", web.Handler)
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, err
	}
	go func() {
		if err := web.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	log.Info("kubernetes hook listening", "address", listener.Addr().String(), "service", o.config.Service)
	return &hook{web}, nil
}

// close ends it at once, if it still runs.
func (h *hook) close() {
	if h.web != nil {
		_ = h.web.Close() // nobody is waiting for an answer any more
	}
}

// stop answers what is under way and takes no more.
func (h *hook) stop(ctx context.Context, log *slog.Logger) {
	if h.web == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := h.web.Shutdown(ctx); err != nil {
		log.Warn("some questions of the API server were cut off", "error", err)
	}
}
