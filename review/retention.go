package review

import (
	"strconv"
	"strings"

	"weir/screening"
)

// Retention says how long the bytes of specs and decisions are kept, by what the
// packs decided. 0: for ever. They go by whole months, so that each is kept at
// least that long and at most a month longer.
type Retention map[screening.Outcome]Days

// MinRetention is the shortest time to keep payloads: longer than any admission,
// and than a month that is still being written.
const MinRetention = Days(31)

// Days is a number of days, written 90d.
type Days int

// UnmarshalText reads the written form. What is none becomes -1, which no field
// allows.
func (d *Days) UnmarshalText(text []byte) error {
	digits, ok := strings.CutSuffix(string(text), "d")
	n, err := strconv.ParseUint(digits, 10, 16)
	if *d = Days(n); err != nil || !ok || n == 0 {
		*d = -1
	}
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (d Days) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(int(d)) + "d"), nil }

func (r Retention) check(bad func(string, string, ...any)) {
	for _, outcome := range []screening.Outcome{screening.OutcomeAdmit, screening.OutcomeEscalate, screening.OutcomeBlock} {
		if days := r[outcome]; days != 0 && days < MinRetention {
			bad("/retention/"+outcome.String(), "must be at least %dd, written like 90d; leave it out to keep them for ever", MinRetention)
		}
	}
}
