package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"weir/screening"
	"weir/store/ledger"
)

// declarations is everything that weir serve reads before it touches anything.
// weir config check reads the same, so that what it passes starts.
type declarations struct {
	options    serveOptions
	log        *slog.Logger
	vocabulary *screening.Vocabulary
	deployment *deployment
	keys       []ledger.Signer
}

// declared is a part that can be wrong by itself. The error carries the code
// with which weir serve ends; found tells people what there is.
type declared struct {
	what string
	load func() error
	find func() string
}

func (d *declarations) parts() []declared {
	o := &d.options
	usage := func(load func() error) func() error {
		return func() error {
			if err := load(); err != nil {
				return exitWith(exitUsage, err)
			}
			return nil
		}
	}
	return []declared{
		{"listener", usage(o.checkListener), o.describeListener},
		{"kubernetes hook", usage(o.hooks.check), o.hooks.describe},
		{"packs", func() (err error) {
			d.vocabulary, err = loadVocabulary(o.packs, o.auditOnly, o.unratified)
			return err
		}, func() string { return count(len(d.vocabulary.Packs()), "pack", "packs") + " in use" }},
		{"declarations", usage(func() (err error) {
			d.deployment, err = loadDeployment(o.configDir, d.log)
			return err
		}), func() string {
			return fmt.Sprintf("people, policies, %s and %s in %s", count(len(d.deployment.endpoints), "endpoint", "endpoints"),
				count(d.deployment.access.Issuers(), "issuer of tokens", "issuers of tokens"), o.configDir)
		}},
		{"signing keys", usage(func() (err error) {
			d.keys, err = loadSigningKeys(o.signingKeys)
			return err
		}), func() string { return count(len(d.keys), "key", "keys") }},
		{"witnesses", usage(o.witnesses.check), o.witnesses.describe},
		{"webhooks", usage(func() error {
			if _, _, err := net.SplitHostPort(o.resolver); o.resolver != "" && err != nil {
				return fmt.Errorf("--webhook-resolver must be HOST:PORT, for example 10.0.0.53:53: %w", err)
			}
			return o.breaker.WithDefaults().Validate()
		}), func() string { return "resolver and breaker" }},
		{"traces", usage(func() error {
			_, err := tracingWanted(os.Getenv)
			return err
		}), func() string {
			if wanted, _ := tracingWanted(os.Getenv); wanted {
				return "on"
			}
			return "off"
		}},
		{"database", usage(func() error {
			_, err := o.at.url()
			return err
		}), func() string {
			if dsn, _ := o.at.url(); dsn != "" {
				return "the URL can be read; weir doctor asks the database"
			}
			return "a private Postgres"
		}},
	}
}
