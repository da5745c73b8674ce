package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"weir/cmd/weir/client"
	"weir/screening"
)

// What check does when the gate gives no answer.
const (
	unavailableClosed = "closed"
	unavailableAllow  = "allow"
)

// bypassRecord is a run that started unscreened, as it is spooled and as it is
// reported: POST /v1/bypasses takes a file of the spool as it is.
type bypassRecord struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	Spec   string    `json:"spec"`
}

// spool keeps bypass records of one gate on this machine until they are reported.
type spool struct{ dir string }

// spoolFor names the place: a directory per gate in $WEIR_SPOOL, else in
// weir-bypasses of the user's state directory.
func spoolFor(server string) (spool, error) {
	base := os.Getenv("WEIR_SPOOL")
	if base == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home, err := os.UserHomeDir()
			if err != nil {
				return spool{}, fmt.Errorf("no place for bypass records: %w; set WEIR_SPOOL to a directory", err)
			}
			state = filepath.Join(home, ".local", "state")
		}
		base = filepath.Join(state, "weir-bypasses")
	}
	return spool{filepath.Join(base, screening.Sum([]byte(server)).String()[:16])}, nil
}

// keep writes a record so that it survives a crash of this machine, or says that
// it could not.
func (s spool) keep(r bypassRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) > screening.MaxDocumentBytes {
		return errors.New("the spec is too large for a record that the gate would take")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.dir, r.ID+".json")
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// report sends what is spooled and removes what the gate has kept. It never
// changes how a command ends: what could not be sent is said, and stays.
func (s spool) report(ctx context.Context, c *client.Client, stderr io.Writer) {
	const atMost = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.json")) // the pattern is well-formed
	sent := 0
	var failed error
	for _, path := range files {
		if err := s.reportOne(ctx, c, path); err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		sent++
	}
	if sent > 0 {
		fmt.Fprintf(stderr, "weir: reported %s to the gate\n", count(sent, "earlier bypass", "earlier bypasses"))
	}
	if left := len(files) - sent; left > 0 {
		fmt.Fprintf(stderr, "weir: %s not reported yet, kept in %s: %s\n", count(left, "earlier bypass", "earlier bypasses"), printable(s.dir), printable(failed.Error()))
	}
}

func (s spool) reportOne(ctx context.Context, c *client.Client, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // another process reported it
	}
	if err != nil {
		return err
	}
	kept, err := c.ReportBypass(ctx, data)
	if err != nil {
		return err
	}
	if kept.ID+".json" != filepath.Base(path) {
		return noAnswer(errors.New("the answer was of another bypass"))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// bypass lets a run start although the gate gave no answer, loudly and on record.
// What the built-in floor blocks does not start, and neither does a run whose
// record cannot be kept.
func bypass(stderr io.Writer, server string, raw []byte, why error) (*bypassRecord, error) {
	closed := func(err error) error { return exitWith(exitNoAnswer, fmt.Errorf("%w; not bypassed: %w", why, err)) }
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return nil, exitWith(exitUsage, err)
	}
	floor, err := loadVocabulary(nil, false, false)
	if err != nil {
		return nil, err
	}
	d, err := screening.Classify(spec, floor, screening.Day(time.Now().UTC().Format(time.DateOnly)))
	if err != nil {
		return nil, closed(err)
	}
	if d.Outcome == screening.OutcomeBlock {
		return nil, exitWith(exitBlock, fmt.Errorf("the gate did not answer, and the safety floor blocks this spec: %s", d.Refusal))
	}
	s, err := spoolFor(server)
	if err != nil {
		return nil, closed(err)
	}
	r := bypassRecord{ID: newUUID(), At: time.Now().UTC().Truncate(time.Microsecond), Reason: clip(strings.TrimPrefix(why.Error(), client.ErrNoAnswer.Error()+": ")), Spec: string(raw)}
	if err := s.keep(r); err != nil {
		return nil, closed(fmt.Errorf("the record cannot be kept: %w", err))
	}
	fmt.Fprintf(stderr, "weir: WARNING: NOT SCREENED: %s\n", printable(r.Reason))
	fmt.Fprintf(stderr, "weir: WARNING: let through by --on-unavailable=allow; record %s\n"+
		"  in %s is reported with the next check\n", r.ID, printable(s.dir))
	return &r, nil
}

// clip shortens a reason to what the gate takes.
func clip(reason string) string {
	const most = 500
	if r := []rune(reason); len(r) > most {
		return string(r[:most])
	}
	return reason
}

// newUUID gives a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
