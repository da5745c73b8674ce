package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir/screening"
	"weir/store"
	"weir/store/ledger"
)

// reportType is the payload type of a signed ratification report.
const reportType = "application/vnd.weir.report+json"

// ratification is how a pack's gates are run.
type ratification struct {
	asOf     string
	replaces string // the pack that it takes the place of
	database bool   // hold it to the reviewed examples of DATABASE_URL or the private Postgres
	at       databasePlace
}

func newPackRatify() *cobra.Command {
	var how ratification
	var signKey string
	cmd := &cobra.Command{
		Use:   "ratify FILE",
		Short: "Run the gates, write the report and seal the pack",
		Long: "Runs a pack's gates on its cases. When all pass, writes the report beside the\n" +
			"pack (FILE.report.json) and its digest into the pack: the pack is then in force.\n" +
			"With --replaces the reviewed examples in the database that the replaced pack\n" +
			"agrees with must keep their findings. With --sign-key the report is signed too.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			if _, err := os.Stat(path); err != nil {
				return exitWith(exitUsage, err)
			}
			var key *ledger.Key
			if signKey != "" {
				var err error
				if key, err = readKey(signKey); err != nil {
					return exitWith(exitUsage, err)
				}
			}
			how.database = how.replaces != ""
			report, err := how.run(cmd.Context(), path)
			if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), report); err != nil {
				return err
			}
			if err := writeSeal(cmd.Context(), path, report, key); err != nil {
				return exitWith(exitFailed, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is ratified: report %.12s\n", report.PackID, report.SHA256)
			return err
		},
	}
	cmd.Flags().StringVar(&how.asOf, "as-of", "", "day of the decisions, YYYY-MM-DD (default today, UTC)")
	cmd.Flags().StringVar(&how.replaces, "replaces", "", "pack that this one replaces: an id or a file; needs the database")
	how.at.flags(cmd.Flags(), "with --replaces: ")
	cmd.Flags().StringVar(&signKey, "sign-key", "", "ed25519 key (PKCS #8 PEM, closed to others) that signs the report")
	return cmd
}

// run gives the report of a pack's gates; it may say that some failed.
func (r ratification) run(ctx context.Context, ref string) (*screening.Report, error) {
	day := screening.Day(time.Now().UTC().Format(time.DateOnly))
	if r.asOf != "" {
		var err error
		if day, err = screening.ParseDay(r.asOf); err != nil {
			return nil, exitWith(exitUsage, fmt.Errorf("--as-of %w", err))
		}
	}
	reg := screening.NewRegistry()
	floor, err := loadBundle(screening.FloorID, reg)
	if err != nil {
		return nil, packError(err)
	}
	b, err := loadBundle(ref, reg)
	if err != nil {
		return nil, packError(err)
	}
	if err := findBases(b, ref, nil, reg); err != nil {
		return nil, packError(err)
	}
	if b.Cases == nil {
		return nil, exitWith(exitPackInvalid, fmt.Errorf("%s has no cases; put them in %s", ref, sibling(ref, ".cases.yaml")))
	}
	if r.database {
		if b.Regression, err = r.regression(ctx, reg); err != nil {
			return nil, err
		}
	}
	report, err := b.Ratify(reg, floor.Pack, day)
	if err != nil {
		return nil, exitWith(exitPackInvalid, err)
	}
	return report, nil
}

// regression reads what the new pack is held to.
func (r ratification) regression(ctx context.Context, reg *screening.Registry) (_ *screening.Regression, err error) {
	replaced, err := loadBundle(r.replaces, reg)
	if err != nil {
		return nil, packError(err)
	}
	if err := findBases(replaced, r.replaces, nil, reg); err != nil {
		return nil, packError(err)
	}
	log := slog.New(slog.DiscardHandler)
	db, err := lookDatabase(ctx, r.at, log)
	if err != nil {
		return nil, exitWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	st, err := db.openStore(ctx, store.Config{Log: log})
	if err != nil {
		return nil, exitWith(exitFailed, err)
	}
	defer st.Close()
	precedents, err := st.Precedents(ctx)
	if err != nil {
		return nil, exitWith(exitFailed, err)
	}
	return &screening.Regression{Replaces: replaced.Pack, Bases: replaced.Bases, Precedents: precedents}, nil
}

// writeSeal writes the report first: a pack that names a report that is not
// there is not in force, which is the safe half of the two.
func writeSeal(ctx context.Context, path string, report *screening.Report, key *ledger.Key) error {
	data, err := screening.MarshalReport(report)
	if err != nil {
		return err
	}
	if err := os.WriteFile(sibling(path, ".report.json"), data, 0o644); err != nil {
		return err
	}
	signature := sibling(path, ".report.dsse.json")
	if key != nil {
		envelope, err := key.Sign(ctx, reportType, data)
		if err != nil {
			return err
		}
		if err := os.WriteFile(signature, append(envelope, '\n'), 0o644); err != nil {
			return err
		}
	} else if err := os.Remove(signature); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // an old signature would be over another report
	}
	pack, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sealed, err := screening.SealPack(pack, report.SHA256)
	if err != nil {
		return err
	}
	return os.WriteFile(path, sealed, 0o644)
}

// readKey reads a signing key and refuses one that others can read.
func readKey(path string) (*ledger.Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("signing key %s can be read by others; chmod 600 it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	key, err := ledger.ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", path, err)
	}
	return &key, nil
}

// checkReportSignature verifies that a pack's report beside it is the one that
// the key signed.
func checkReportSignature(ctx context.Context, path, keyPath string) error {
	data, err := os.ReadFile(keyPath)
	if err != nil {
		return err
	}
	key, err := ledger.ParsePublicKey(data)
	if err != nil {
		return fmt.Errorf("public key %s: %w", keyPath, err)
	}
	envelope, err := os.ReadFile(sibling(path, ".report.dsse.json"))
	if err != nil {
		return fmt.Errorf("the report is not signed: %w", err)
	}
	signed, err := key.Open(ctx, reportType, envelope)
	if err != nil {
		return fmt.Errorf("report of %s: %w", path, err)
	}
	report, err := os.ReadFile(sibling(path, ".report.json"))
	if err != nil {
		return err
	}
	if string(signed) != string(report) {
		return fmt.Errorf("report of %s: the signature is over another report", path)
	}
	return nil
}

func newPackDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show which terms of two packs differ, and how",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			reg := screening.NewRegistry()
			old, err := loadBundle(args[0], reg)
			if err != nil {
				return packError(err)
			}
			next, err := loadBundle(args[1], reg)
			if err != nil {
				return packError(err)
			}
			changes, err := screening.DiffPacks(old.Pack, next.Pack)
			if err != nil {
				return exitWith(exitFailed, err)
			}
			out := &lines{w: cmd.OutOrStdout()}
			out.put("%s %s → %s %s: %s", old.Pack.ID, old.Pack.Version, next.Pack.ID, next.Pack.Version, count(len(changes), "difference", "differences"))
			for _, c := range changes {
				out.put("")
				out.put("%s  %s", c.Kind, c.Term)
				for _, f := range c.Fields {
					if c.Kind != "changed" {
						continue // the whole term came or went
					}
					out.wrap("  "+f.Key+"  ", "    ", dash(f.Old)+" → "+dash(f.New))
				}
			}
			return out.err
		},
	}
}

func dash(s string) string {
	if s == "" {
		return "(absent)"
	}
	return s
}
