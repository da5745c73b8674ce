package webhooks

import (
	"errors"
	"fmt"
	"time"
)

// Schedule holds the delay before each attempt: the first before attempt 1, and
// so on. Its length is the number of attempts.
type Schedule []time.Duration

// DefaultSchedule tries 13 times over about 72 hours: long enough for a
// receiver that broke on a Friday evening to be mended on Monday.
func DefaultSchedule() Schedule {
	return Schedule{
		0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour, 22 * time.Hour,
	}
}

func (s Schedule) validate() error {
	if len(s) == 0 {
		return errors.New("schedule is empty; give a delay for each attempt")
	}
	for i, d := range s {
		if d < 0 {
			return fmt.Errorf("schedule entry %d is negative", i+1)
		}
	}
	return nil
}

// Next returns the delay after attempt number n (from 1) failed, and false when
// there is none left. The delay is spread by ±20 %, so that receivers that fell
// over together are not all called again together. A receiver that named a time
// is given it, within the delay and its double: it can ask for patience, but
// neither for a storm nor for being forgotten. jitter returns a value in [0,1).
func (s Schedule) Next(n int, retryAfter time.Duration, jitter func() float64) (time.Duration, bool) {
	if n < 1 || n >= len(s) {
		return 0, false
	}
	if base := s[n]; retryAfter > 0 {
		return min(max(retryAfter, base), 2*base), true
	}
	return spread(s[n], jitter), true
}

func spread(d time.Duration, jitter func() float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*jitter()))
}
