package webhooks

import (
	"net/http"
	"testing"
	"time"
)

func fixed(v float64) func() float64 { return func() float64 { return v } }

func TestDefaultSchedule(t *testing.T) {
	t.Parallel()
	s := DefaultSchedule()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	for i, d := range s {
		total += d
		if i > 0 && d <= s[i-1] {
			t.Errorf("entry %d, %v, is not longer than the one before", i+1, d)
		}
	}
	if total < 70*time.Hour || total > 75*time.Hour {
		t.Errorf("the schedule spans %v, want about 72h", total)
	}
}

func TestScheduleNext(t *testing.T) {
	t.Parallel()
	s := Schedule{0, 10 * time.Second, time.Minute}
	tests := []struct {
		name   string
		n      int
		after  time.Duration
		jitter float64
		want   time.Duration
		ok     bool
	}{
		{"earliest", 1, 0, 0, 8 * time.Second, true},
		{"middle", 1, 0, 0.5, 10 * time.Second, true},
		{"latest", 1, 0, 1, 12 * time.Second, true},
		{"second", 2, 0, 0.5, time.Minute, true},
		{"used up", 3, 0, 0.5, 0, false},
		{"far past", 99, time.Second, 0.5, 0, false},
		{"no such attempt", 0, 0, 0.5, 0, false},
		{"asked for less", 1, 3 * time.Second, 0, 10 * time.Second, true},
		{"asked for something", 1, 15 * time.Second, 0, 15 * time.Second, true},
		{"asked for too much", 1, 24 * time.Hour, 0, 20 * time.Second, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := s.Next(tt.n, tt.after, fixed(tt.jitter))
			if got != tt.want || ok != tt.ok {
				t.Errorf("Next = %v, %t; want %v, %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// Fault test 28, the header itself.
func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"3", 3 * time.Second},
		{" 3 ", 3 * time.Second},
		{"0", 0},
		{now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
		{now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 1<<63 - 1}, // saturates, and Next clamps it
		{"999999999", 999999999 * time.Second},
		{"99999999999999999999999", 0},
		{"-1", 0},
		{"+3", 0},
		{"3.5", 0},
		{"1e3", 0},
		{"abc", 0},
		{"", 0},
		{"3\x00", 0},
	}
	for _, tt := range tests {
		if got := parseRetryAfter(tt.value, now); got != tt.want {
			t.Errorf("parseRetryAfter(%q) = %v, want %v", tt.value, got, tt.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in    string
		limit int
		want  string
		cut   bool
	}{
		{"", 8, "", false},
		{"plain 'é' 漢", 64, "plain 'é' 漢", false},
		{"a\nb\x00\x1b[31m", 64, `a\nb\x00\x1b[31m`, false},
		{"\u202eevil\u200b", 64, `\u202eevil\u200b`, false},
		{"\xff\xfe\xc3", 64, `\xff\xfe\xc3`, false},
		{"\uFFFD", 64, "\uFFFD", false}, // valid input, not to be taken for an error
		{"漢字", 4, "漢", true},            // never half a character
		{"ab\n", 3, "ab", true},         // nor half an escape
		{"abc", 3, "abc", false},
	}
	for _, tt := range tests {
		if got, cut := excerpt([]byte(tt.in), tt.limit); got != tt.want || cut != tt.cut {
			t.Errorf("excerpt(%q, %d) = %q, %t; want %q, %t", tt.in, tt.limit, got, cut, tt.want, tt.cut)
		}
	}
}
