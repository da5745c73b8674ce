// Identity compares the reference rules with the implementation in the document that defines them, on the same texts
// in one run: first every verdict, then the speed. It needs python3 and, in WEIR_SEED_DIR, the folder of the document;
// without them it measures weir alone.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"weir/screening"
)

const (
	messageCount = 5000
	textSize     = 10_000_000
	rounds       = 5
	goal, aim    = 40, 100 // times the document's implementation
)

func main() {
	runtime.GOMAXPROCS(1)
	if err := compare(os.Stdout, os.Getenv("WEIR_SEED_DIR"), messageCount, textSize, rounds); err != nil {
		fmt.Fprintln(os.Stderr, "identity:", err)
		os.Exit(1)
	}
}

// row is what was measured of one set, in bytes a second, by round.
type row struct {
	weir, document []float64
}

func compare(w io.Writer, seedDir string, messages, size, rounds int) (err error) {
	sets, err := textSets(messages, size)
	if err != nil {
		return err
	}
	p, err := startPeer(seedDir, sets)
	var absent *absentError
	switch {
	case errors.As(err, &absent):
		fmt.Fprintf(w, "the document's implementation is absent: %v\n", absent)
	case err != nil:
		return err
	default:
		defer func() { err = errors.Join(err, p.stop()) }()
		if err := checkVerdicts(w, p, sets); err != nil {
			return err
		}
	}
	rows := make([]row, len(sets))
	for range rounds {
		for i, set := range sets {
			rows[i].weir = append(rows[i].weir, measure(set))
			if p == nil {
				continue
			}
			took, err := p.time(i)
			if err != nil {
				return err
			}
			rows[i].document = append(rows[i].document, float64(set.bytes())/took.Seconds())
		}
	}
	printTable(w, sets, rows)
	return nil
}

// checkVerdicts fails on the first text about which the two disagree.
func checkVerdicts(w io.Writer, p *peer, sets []textSet) error {
	total, rejected := 0, 0
	for i, set := range sets {
		theirs, err := p.verdicts(i)
		if err != nil {
			return err
		}
		if len(theirs) != len(set.texts) {
			return fmt.Errorf("%s: %d verdicts for %d texts", set.name, len(theirs), len(set.texts))
		}
		for k, text := range set.texts {
			ours := flagged(text)
			if ours != theirs[k] {
				return fmt.Errorf("%s: text %d: weir says override=%v, the document %v", set.name, k, ours, theirs[k])
			}
			total++
			if ours {
				rejected++
			}
		}
	}
	fmt.Fprintf(w, "%d verdicts, %d of them overrides: all equal to the document's, on Python %s\n", total, rejected, p.version)
	return nil
}

// measure screens a set for long enough to be measured, and gives bytes for each second of processor time.
func measure(set textSet) float64 {
	runtime.GC()
	passes, overrides, start := 0, 0, processorTime()
	for {
		for _, text := range set.texts {
			if screening.ScreenText(screening.RulesetReference, text).IdentityOverride {
				overrides++
			}
		}
		passes++
		if took := processorTime() - start; took > 200*time.Millisecond {
			runtime.KeepAlive(overrides)
			return float64(passes*set.bytes()) / took.Seconds()
		}
	}
}

// processorTime is what this process has used. Unlike the time on the wall it leaves out what other programs take.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // cannot happen: both arguments are valid
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// printTable prints medians. A ratio is taken within one round, where both had the same machine.
func printTable(w io.Writer, sets []textSet, rows []row) {
	fmt.Fprintf(w, "MB for each second of processor time, one core, median of %d interleaved rounds\n\n", len(rows[0].weir))
	fmt.Fprintf(w, "%-24s %6s %6s %10s %8s   %s\n", "", "texts", "MB", "document", "weir", "ratio (lowest to highest)")
	lowest := 0.0
	for i, set := range sets {
		r := rows[i]
		fmt.Fprintf(w, "%-24s %6d %6.1f ", set.name, len(set.texts), float64(set.bytes())/1e6)
		if len(r.document) == 0 {
			fmt.Fprintf(w, "%10s %8.1f   -\n", "absent", median(r.weir)/1e6)
			continue
		}
		ratios := make([]float64, len(r.weir))
		for k := range ratios {
			ratios[k] = r.weir[k] / r.document[k]
		}
		fmt.Fprintf(w, "%10.2f %8.1f   %.0fx (%.0f to %.0f)\n", median(r.document)/1e6, median(r.weir)/1e6,
			median(ratios), slices.Min(ratios), slices.Max(ratios))
		if m := median(ratios); i == 0 || m < lowest {
			lowest = m
		}
	}
	if lowest > 0 {
		fmt.Fprintf(w, "\nThe document stops at the first rule that fires, markers first; weir goes on, since it names them all.\n")
		fmt.Fprintf(w, "lowest median ratio: %.0fx (to reach: %dx, aim: %dx)\n", lowest, goal, aim)
	}
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
