package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"weir/cmd/weir/certificate"
)

// CheckFiles says what is wrong with the hook's files now. It needs a client CA: only
// the API server may ask.
func CheckFiles(files certificate.Files) error {
	if files.Cert == "" || files.Key == "" || files.ClientCA == "" {
		return errors.New("the Kubernetes hook needs a certificate, its key and the CA of its clients")
	}
	if err := files.Check(); err != nil {
		return fmt.Errorf("the Kubernetes hook: %w", err)
	}
	return nil
}

// Server wraps the handler so that it is only reached with a client certificate. The
// error says what is wrong with the files now.
func Server(h *Handler, files certificate.Files) (*http.Server, error) {
	if err := CheckFiles(files); err != nil {
		return nil, err
	}
	cfg, err := files.Config(h.cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes hook: %w", err)
	}
	return &http.Server{
		Handler:           h,
		TLSConfig:         cfg,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      35 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(h.cfg.Log.Handler(), slog.LevelWarn),
	}, nil
}
