package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

// worstFirst orders exit codes for a batch, which ends with the worst: what is
// final before what is not known, and that before what may still change.
var worstFirst = []int{exitBlock, exitUsage, exitFailed, exitNoAnswer, exitEnded, exitPending, exitAdmit}

func badness(code int) int {
	if i := slices.Index(worstFirst, code); i >= 0 {
		return i
	}
	return slices.Index(worstFirst, exitNoAnswer) // not known
}

// giveUpAfter is how many specs in a row may have no answer before the rest is
// not asked about any more.
const giveUpAfter = 3

// batchOptions is a batch as it was asked for.
type batchOptions struct {
	of       string
	parallel int
	resume   string
	offline  bool
	asOf     string
	output   string
	packs    []string
	conn     gateFlags
}

func (o *batchOptions) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.of, "batch", "", "screen every spec below this directory, or on the lines of this .ndjson file")
	cmd.Flags().IntVar(&o.parallel, "parallel", 4, "with --batch: specs that are asked about at once, 1 to 64")
	cmd.Flags().StringVar(&o.resume, "resume", "", "with --batch: keep the results in this file, and go on from what is in it")
}

// batchRun is a batch under way.
type batchRun struct {
	*batchOptions
	source  *batchSource
	results *batchFile
	check   func(ctx context.Context, item *batchItem, sum screening.Digest256) (*client.Screening, error)

	done []checked // without answers, in the order of the source
}

// run screens all specs of a source and ends with the worst exit code.
func (o *batchOptions) run(cmd *cobra.Command) (err error) {
	if o.parallel < 1 || o.parallel > 64 {
		return exitWith(exitUsage, errors.New("--parallel must be 1 to 64"))
	}
	b := &batchRun{batchOptions: o}
	head := batchHead{From: "offline", Of: o.of}
	if o.offline {
		err = b.decideHere(&head)
	} else {
		err = b.askGate(cmd, &head)
	}
	if err != nil {
		return err
	}
	if b.source, err = openBatchSource(o.of); err != nil {
		return err
	}
	defer b.source.close()
	if b.results, err = openBatchFile(o.resume, head); err != nil {
		return err
	}
	defer b.results.close()
	if err := b.fill(cmd); err != nil {
		return err
	}
	if len(b.done) == 0 {
		return exitWith(exitUsage, fmt.Errorf("%s holds no specs (.yaml, .yml or .json, or lines), so that nothing was checked", o.of))
	}
	if err := b.show(cmd.OutOrStdout()); err != nil {
		return exitWith(exitFailed, err)
	}
	if code := b.code(); code != exitAdmit {
		return exitWith(code, nil)
	}
	return nil
}

// decideHere sets up a batch without a server.
func (b *batchRun) decideHere(head *batchHead) error {
	day, err := dayAsOf(b.asOf)
	if err != nil {
		return err
	}
	v, err := loadVocabulary(b.packs, false, false)
	if err != nil {
		return err
	}
	head.AsOf, head.Engine, head.Packs = day, screening.EngineVersion, v.Packs()
	b.check = func(_ context.Context, item *batchItem, _ screening.Digest256) (*client.Screening, error) {
		return decideWith(v, item.raw, day)
	}
	return nil
}

// askGate sets up a batch that a gate decides. That it answers at all, and to this
// key, is found out once and not per spec.
func (b *batchRun) askGate(cmd *cobra.Command, head *batchHead) error {
	c, err := b.conn.client()
	if err != nil {
		return err
	}
	head.From = c.Server()
	ctx, cancel := context.WithTimeout(cmd.Context(), b.conn.timeout)
	defer cancel()
	if _, err := c.Packs(ctx); err != nil {
		return err
	}
	if spooled, err := spoolFor(c.Server()); err == nil {
		spooled.report(cmd.Context(), c, cmd.ErrOrStderr())
	}
	b.check = func(ctx context.Context, item *batchItem, sum screening.Digest256) (*client.Screening, error) {
		ctx, cancel := context.WithTimeout(ctx, b.conn.timeout)
		defer cancel()
		s, err := b.ask(ctx, c, item, sum)
		if err == nil && s.SpecSHA256 != sum {
			return nil, noAnswer(errors.New("it answers for other bytes than those it was asked about"))
		}
		return s, err
	}
	return nil
}

// ask submits a spec, or asks how a screening that an earlier run made stands now:
// a status that was kept is never believed.
func (b *batchRun) ask(ctx context.Context, c *client.Client, item *batchItem, sum screening.Digest256) (*client.Screening, error) {
	if id := b.results.earlier[batchKey{item.path, sum}].id; id != "" {
		return c.Screening(ctx, id, 0)
	}
	key := screening.Sum([]byte(b.results.head.Run + "\x00" + sum.String()))
	return c.Submit(ctx, hex.EncodeToString(key[:]), item.raw)
}

// fill checks every spec, some at once, and keeps each result when it is there.
func (b *batchRun) fill(cmd *cobra.Command) error {
	ctx := cmd.Context()
	at, shown := progressTo(cmd.ErrOrStderr(), b.source.size)
	defer shown()
	type work struct {
		n    int
		item batchItem
	}
	type result struct {
		n       int
		done    int64
		checked checked
		keep    bool
	}
	items, results := make(chan work), make(chan result)
	asking, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var readErr error
	go func() {
		defer close(items)
		n, runs := 0, map[string]placed{}
		readErr = b.source.items(ctx, func(item batchItem) {
			if !b.offline && item.err == nil {
				item.err = sameRun(runs, &item)
			}
			select {
			case items <- work{n, item}:
			case <-ctx.Done():
			}
			n++
		})
	}()
	var workers sync.WaitGroup
	for range b.parallel {
		workers.Go(func() {
			for w := range items {
				c, keep := b.one(asking, &w.item)
				results <- result{w.n, w.item.done, c, keep}
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	var failed error
	silent := 0
	for r := range results {
		for len(b.done) <= r.n {
			b.done = append(b.done, checked{})
		}
		if r.keep && failed == nil && ctx.Err() == nil {
			if failed = b.results.keep(&r.checked); failed != nil {
				giveUp()
			}
		}
		if silent++; r.checked.Code != exitNoAnswer {
			silent = 0
		}
		if silent == giveUpAfter {
			giveUp() // the rest is read, and listed as not asked about
		}
		r.checked.Answer = nil
		b.done[r.n] = r.checked
		at(r.done, "checked "+count(len(b.done), "spec", "specs"))
	}
	switch {
	case ctx.Err() != nil && b.results.named:
		return exitWith(exitFailed, errors.New("interrupted; the same command goes on from what is kept"))
	case ctx.Err() != nil:
		return exitWith(exitFailed, errors.New("interrupted, and nothing was kept; with --resume FILE it could go on"))
	case failed != nil:
		return exitWith(exitFailed, fmt.Errorf("keep the results: %w", failed))
	}
	return readErr
}

// placed is a spec of a run, as far as others of that run have to know it.
type placed struct {
	path string
	sum  screening.Digest256
}

// sameRun refuses a second spec of a run: at a gate one of the two would take the
// other's place, whichever comes later.
func sameRun(runs map[string]placed, item *batchItem) error {
	spec, err := screening.ParseSpec(item.raw)
	if err != nil {
		return nil // the gate says what is wrong with it
	}
	first, known := runs[spec.RunRef]
	if !known {
		runs[spec.RunRef] = placed{item.path, spec.SHA256}
	}
	if !known || first.sum == spec.SHA256 {
		return nil
	}
	return fmt.Errorf("has the run_ref of %s and other bytes; a gate keeps one spec of a run, so screen them apart", first.path)
}

// one checks a spec. keep is false for what has to be asked again anyway.
func (b *batchRun) one(ctx context.Context, item *batchItem) (c checked, keep bool) {
	c = checked{Path: item.path}
	refused := func(err error) (checked, bool) {
		c.Code = exitOf(err)
		var invalid *screening.InvalidError
		if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
			c.Problems = invalid.Problems
			c.Why = problemLine(c.Problems[0])
			if more := len(c.Problems) - 1; more > 0 {
				c.Why += fmt.Sprintf("; and %d more", more)
			}
			return c, false
		}
		c.Why, _, _ = strings.Cut(err.Error(), "\n")
		return c, false
	}
	if item.err != nil {
		return refused(item.err)
	}
	c.SHA256 = screening.Sum(item.raw)
	if len(item.raw) > screening.MaxDocumentBytes { // there may be more than was read: this is no spec's digest
		c.SHA256 = screening.Digest256{}
		return refused(errors.New("is larger than 1 MiB"))
	}
	if ctx.Err() != nil {
		return refused(noAnswer(errors.New("it was not asked about this one, as it gave none before")))
	}
	s, err := b.check(ctx, item, c.SHA256)
	if err != nil {
		return refused(err)
	}
	c.Status, c.ID, c.RunRef, c.Answer = s.Status, s.ID, s.RunRef, s.Raw
	if err := ending(s, nil); err != nil {
		c.Code = exitOf(err)
	}
	c.Why = whyIn(s)
	return c, true
}

// problemLine is a problem in a line.
func problemLine(p screening.Problem) string { return strings.TrimSpace(p.Pointer + " " + p.Detail) }

// whyIn names in a line what stands against a run.
func whyIn(s *client.Screening) string {
	if s.Status == review.StatusAdmitted {
		return summary(s)
	}
	var terms []string
	for _, cause := range s.Decision.Causes {
		if cause.Effect >= screening.Escalate {
			terms = append(terms, cause.Term)
		}
	}
	return cmp.Or(strings.Join(terms, ", "), summary(s))
}

// code is the worst exit code of all.
func (b *batchRun) code() int {
	worst := exitAdmit
	for _, c := range b.done {
		if badness(c.Code) < badness(worst) {
			worst = c.Code
		}
	}
	return worst
}
