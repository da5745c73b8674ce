package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
)

// Files say who a server is and whom it answers.
type Files struct {
	Cert, Key string // of the server, in PEM: the certificate first, then those that signed it
	// ClientCA, in PEM, signs the certificates that clients have to have. Empty:
	// they need none.
	ClientCA string
	// ClientNames restricts clients to certificates with one of these common or DNS
	// names. Empty allows every certificate of the CA, which then must sign for
	// nobody else.
	ClientNames []string
	// MinVersion is the oldest TLS that is spoken: "1.2", which is the default, or "1.3".
	MinVersion string
}

// Check says what is wrong with the files now.
func (f Files) Check() error {
	_, err := f.load()
	return err
}

// Config serves by the files, as they are at each handshake. The error says what is
// wrong with them now.
func (f Files) Config(log *slog.Logger) (*tls.Config, error) {
	r := &reloader{files: f, log: log}
	if _, err := r.read(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetConfigForClient: r.configFor}, nil
}

var (
	protocols = []string{"h2", "http/1.1"}
	versions  = map[string]uint16{"": tls.VersionTLS12, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
)

type reloader struct {
	files Files
	log   *slog.Logger

	mu   sync.Mutex
	good *tls.Config
}

func (r *reloader) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	cfg, err := r.read()
	if err != nil {
		r.log.WarnContext(hello.Context(), "certificates not read again; the last good ones hold", "error", err)
	}
	return cfg, nil
}

// read gives the configuration of the files, or with the error the last good one.
func (r *reloader) read() (*tls.Config, error) {
	cfg, err := r.files.load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.good = cfg
	}
	return r.good, err
}

func (f Files) load() (*tls.Config, error) {
	version, ok := versions[f.MinVersion]
	if !ok {
		return nil, errors.New("the oldest TLS version must be 1.2 or 1.3")
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a certificate and its key go together; one of the two is not given")
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", f.Cert, err)
	}
	cfg := &tls.Config{MinVersion: version, NextProtos: protocols, Certificates: []tls.Certificate{cert}}
	if f.ClientCA == "" {
		return cfg, nil
	}
	if cfg.ClientCAs, err = Pool(f.ClientCA); err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	cfg.ClientAuth, cfg.VerifyConnection = tls.RequireAndVerifyClientCert, f.verify
	// Not by ticket: a caller whose CA was taken out must not come back by one.
	cfg.SessionTicketsDisabled = true
	return cfg, nil
}

// Pool reads the authorities of a file, in PEM.
func Pool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

func (f Files) verify(s tls.ConnectionState) error {
	if len(s.VerifiedChains) == 0 {
		return errors.New("no client certificate")
	}
	if len(f.ClientNames) == 0 {
		return nil
	}
	leaf := s.VerifiedChains[0][0]
	if slices.ContainsFunc(append([]string{leaf.Subject.CommonName}, leaf.DNSNames...), func(name string) bool { return slices.Contains(f.ClientNames, name) }) {
		return nil
	}
	return errors.New("the client certificate is of nobody who is allowed")
}
