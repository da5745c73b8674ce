package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/cmd/weir/certificate"
	"weir/review"
	"weir/screening"
)

// FileName is the name of the declarations, beside people.yaml.
const FileName = "access.yaml"

type accessFile struct {
	Issuers []issuerEntry `json:"issuers"`
	Grants  []grantEntry  `json:"grants"`
}

type issuerEntry struct {
	ID         string   `json:"id"`       // for people: in logs and addresses
	Issuer     string   `json:"issuer"`   // iss of its tokens, letter for letter
	Audience   string   `json:"audience"` // aud that tokens for the API must have
	Algorithms []string `json:"algorithms"`
	CAFile     string   `json:"ca_file"`   // PEM, instead of the system's authorities
	JWKSFile   string   `json:"jwks_file"` // keys in a file instead of by discovery
	Login      *login   `json:"login"`     // signs people in to the console
}

type login struct {
	ClientID         string `json:"client_id"`
	ClientSecretFile string `json:"client_secret_file"`
	ClientSecretEnv  string `json:"client_secret_env"`
	Label            string `json:"label"` // what the button says
}

type grantEntry struct {
	People   []string `json:"people"`
	Services []string `json:"services"`
	Groups   []string `json:"groups"`
	Project  string   `json:"project"` // default "default", as of weir key create
	Scopes   []string `json:"scopes"`
}

// algorithms that an issuer may sign with. All have a key that only the issuer
// has: with HS256 its public key would be good enough to sign.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// Config tunes an Access.
type Config struct {
	// Now is the clock that tokens are judged by. Default time.Now.
	Now func() time.Time
	// Log is told when the keys of an issuer cannot be fetched, and when they can
	// be again. Default slog.Default().
	Log *slog.Logger
}

// grant is what one person or service may do, and where.
type grant struct {
	project string
	scopes  []review.Scope
}

// Access is the declared issuers and grants.
type Access struct {
	cfg     Config
	people  *review.People
	issuers []*issuer
	grants  map[string]grant // by the id of the person or service
}

// Load reads access.yaml of a directory, and what it refers to. Without the file
// no token is good. The error is a [*screening.InvalidError] for what the file says.
func Load(dir string, people *review.People, cfg Config) (*Access, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	a := &Access{cfg: cfg, people: people, grants: map[string]grant{}}
	name := filepath.Join(dir, FileName)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	var file accessFile
	if err := screening.Decode("access", name, data, &file); err != nil {
		return nil, err
	}
	var found []screening.Problem
	bad := func(pointer, format string, args ...any) {
		found = append(found, screening.Problem{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	a.checkIssuers(file.Issuers, bad)
	a.checkGrants(file.Grants, bad)
	if found != nil {
		return nil, &screening.InvalidError{What: "access", Name: name, Problems: found}
	}
	patience := make(chan struct{}, waitersAtMost)
	for _, e := range file.Issuers {
		is, err := newIssuer(e, dir, patience, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: issuer %s: %w", name, e.ID, err)
		}
		a.issuers = append(a.issuers, is)
	}
	return a, nil
}

func (a *Access) checkIssuers(list []issuerEntry, bad func(string, string, ...any)) {
	ids, urls := map[string]bool{}, map[string]bool{}
	for i, e := range list {
		at := fmt.Sprintf("/issuers/%d", i)
		if !screening.IsID(e.ID) {
			bad(at+"/id", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		}
		if ids[e.ID] {
			bad(at+"/id", "issuer %s is declared twice", e.ID)
		}
		if urls[e.Issuer] {
			bad(at+"/issuer", "issuer %s: is declared twice; it has one audience", e.ID)
		}
		ids[e.ID], urls[e.Issuer] = true, true
		if why := issuerProblem(e.Issuer); why != "" {
			bad(at+"/issuer", "issuer %s: %s", e.ID, why)
		}
		if screening.IsBlank(e.Audience) {
			bad(at+"/audience", "issuer %s: must say for whom its tokens are, for example weir: without, a token for anybody would do", e.ID)
		}
		if e.Algorithms != nil && len(e.Algorithms) == 0 {
			bad(at+"/algorithms", "issuer %s: must name at least one; left out, it is all of RS256, ES256, EdDSA", e.ID)
		}
		for j, alg := range e.Algorithms {
			if !slices.Contains(algorithms, jose.SignatureAlgorithm(alg)) {
				bad(fmt.Sprintf("%s/algorithms/%d", at, j), "issuer %s: must be one of RS256, ES256, EdDSA", e.ID)
			}
		}
		if l := e.Login; l != nil {
			if screening.IsBlank(l.ClientID) {
				bad(at+"/login/client_id", "issuer %s: must be the client that the issuer knows the console as", e.ID)
			}
			if l.ClientSecretFile != "" && l.ClientSecretEnv != "" {
				bad(at+"/login", "issuer %s: give client_secret_file or client_secret_env, not both", e.ID)
			}
			if e.JWKSFile != "" {
				bad(at+"/login", "issuer %s: a login needs the issuer's discovery document, so leave jwks_file out", e.ID)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	for _, subject := range a.people.TokenSubjects() {
		if from, _, _ := review.CutSubject(subject); !urls[from] && from != review.ClusterUsers {
			bad("/issuers", "people.yaml has a subject of %s, which no issuer here is, letter for letter", from)
		}
	}
}

func issuerProblem(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(text, "?#|"):
		return "must be an address like https://idp.example, without user, query or fragment"
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	}
	return "must begin with https://; its keys are what every token hangs on"
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (a *Access) checkGrants(list []grantEntry, bad func(string, string, ...any)) {
	for i, e := range list {
		at := fmt.Sprintf("/grants/%d", i)
		g := grant{project: e.Project}
		if e.Project == "" {
			g.project = "default"
		}
		if !screening.IsID(g.project) {
			bad(at+"/project", "must be 1 to 128 letters, digits or . _ - and start with a letter or digit")
		}
		var err error
		if g.scopes, err = review.ParseScopes(e.Scopes); err != nil {
			bad(at+"/scopes", "%v", err)
		}
		give := func(pointer, id string) {
			had, ok := a.grants[id]
			if ok && had.project != g.project {
				bad(pointer, "%s has a grant in another project; a token speaks for one", id)
			}
			merged := grant{g.project, slices.Clone(had.scopes)}
			for _, s := range g.scopes {
				if !slices.Contains(merged.scopes, s) {
					merged.scopes = append(merged.scopes, s)
				}
			}
			a.grants[id] = merged
		}
		for j, name := range e.People {
			pointer := fmt.Sprintf("%s/people/%d", at, j)
			if id, ok := a.people.Person(name); ok {
				give(pointer, id)
			} else {
				bad(pointer, "is not a person of people.yaml")
			}
		}
		for j, name := range e.Services {
			pointer := fmt.Sprintf("%s/services/%d", at, j)
			if a.people.IsService(name) {
				give(pointer, name)
			} else {
				bad(pointer, "is not a service of people.yaml")
			}
		}
		for j, name := range e.Groups {
			pointer := fmt.Sprintf("%s/groups/%d", at, j)
			members := a.people.Members(name)
			if members == nil {
				bad(pointer, "is not a group of people.yaml")
			}
			for _, id := range members {
				give(pointer, id)
			}
		}
		if len(e.People)+len(e.Services)+len(e.Groups) == 0 {
			bad(at, "is for nobody; name people, services or groups")
		}
	}
}

// beside gives a path that is meant relative to the declarations.
func beside(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// clientTLS trusts the authorities of a file, or the system's when there is none.
func clientTLS(caFile string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return cfg, nil
	}
	var err error
	if cfg.RootCAs, err = certificate.Pool(caFile); err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	return cfg, nil
}

func (l *login) secret(dir string) (string, error) {
	switch {
	case l.ClientSecretEnv != "":
		if v := os.Getenv(l.ClientSecretEnv); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable %s that client_secret_env names is not set", l.ClientSecretEnv)
	case l.ClientSecretFile != "":
		data, err := os.ReadFile(beside(dir, l.ClientSecretFile))
		if err != nil {
			return "", fmt.Errorf("client_secret_file: %w", err)
		}
		if s := strings.TrimSpace(string(data)); s != "" {
			return s, nil
		}
		return "", errors.New("client_secret_file: is empty")
	}
	return "", nil // a public client; the code is bound by PKCE either way
}
