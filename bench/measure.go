package main

import (
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// entrant is one contestant of a comparison. run does its work once on the i-th of the inputs.
type entrant struct {
	name string
	run  func(i int)
}

// result is what was measured of one entrant: the median processor time of a run, and the ratio to the first entrant in the same
// round, as a median, for the machine's speed drifts from round to round.
type result struct {
	name       string
	perRun     time.Duration
	ratio      float64 // time of this one / time of the first
	low, high  float64 // range of the ratio over the rounds
	allocs     float64 // per run
	bytesAlloc float64
}

const (
	rounds    = 7
	roundTime = 150 * time.Millisecond
)

// compare lets the entrants run in turn, for a while each, over several rounds. n is how many inputs there are.
func compare(n int, entrants ...entrant) []result {
	times := make([][]float64, len(entrants))
	results := make([]result, len(entrants))
	for i, e := range entrants {
		results[i].name = e.name
		results[i].allocs, results[i].bytesAlloc = allocations(n, e)
	}
	for range rounds {
		for i, e := range entrants {
			times[i] = append(times[i], timed(n, e))
		}
	}
	for i := range results {
		r := &results[i]
		r.perRun = time.Duration(median(times[i]))
		var ratios []float64
		for round := range rounds {
			ratios = append(ratios, times[i][round]/times[0][round])
		}
		r.ratio, r.low, r.high = median(ratios), slices.Min(ratios), slices.Max(ratios)
	}
	return results
}

// timed gives nanoseconds of processor time for a run, what the garbage collector takes included: on a shared machine
// time on the wall counts others' work as well.
func timed(n int, e entrant) float64 {
	runtime.GC()
	runs := 0
	began := processorTime()
	for processorTime()-began < roundTime {
		for i := range n {
			e.run(i)
		}
		runs += n
	}
	return float64(processorTime()-began) / float64(runs)
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // has no reason to fail
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// allocations counts those of a run, after the first runs have made room.
func allocations(n int, e entrant) (count, bytes float64) {
	for range 2 {
		for i := range n {
			e.run(i)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		e.run(i)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[len(sorted)/2]
}
