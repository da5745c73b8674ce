package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"weir/screening"
	"weir/store/ledger"
	"weir/webhooks"
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
	d.deployment = &deployment{} // stays so where it cannot be read: the parts below go on
	return []declared{
		{"listener", usage(o.checkListener), o.describeListener},
		{"packs", func() (err error) {
			d.vocabulary, err = loadVocabulary(o.packs, o.auditOnly, o.unratified)
			return err
		}, func() string { return count(len(d.vocabulary.Packs()), "pack", "packs") + " in use" }},
		{"declarations", usage(func() error {
			loaded, err := loadDeployment(o.configDir, d.log)
			if err == nil {
				d.deployment = loaded
			}
			return err
		}), func() string {
			return fmt.Sprintf("people, policies, %s and %s in %s", count(len(d.deployment.endpoints), "endpoint", "endpoints"),
				count(d.deployment.access.Issuers(), "issuer of tokens", "issuers of tokens"), o.configDir)
		}},
		{"kubernetes hook", usage(func() error { return o.hooks.check(d.deployment.people) }), o.hooks.describe},
		{"signing keys", usage(func() (err error) {
			d.keys, err = loadSigningKeys(o.signingKeys)
			return err
		}), func() string { return count(len(d.keys), "key", "keys") }},
		{"witnesses", usage(func() error {
			dsn, err := o.at.url()
			if err != nil { // which is said of the database
				dsn = ""
			}
			return o.witnesses.check(len(o.signingKeys) > 0 || dsn == "") // a private Postgres has a key of its own
		}), o.witnesses.describe},
		{"webhooks", usage(func() error {
			if _, _, err := net.SplitHostPort(o.resolver); o.resolver != "" && err != nil {
				return fmt.Errorf("--webhook-resolver must be HOST:PORT, for example 10.0.0.53:53: %w", err)
			}
			if err := o.breaker.WithDefaults().Validate(); err != nil {
				return err
			}
			_, err := webhooks.New(nil, d.deployment.endpoints, o.webhooks)
			return err
		}), func() string { return "resolver, breaker, schedule and lease" }},
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
