package webhooks

import (
	"errors"
	"time"
)

// Breaker says when an endpoint that fails is left alone. After Failures failed
// attempts in a row nothing is sent to it for Cooldown; then one delivery
// probes. If that fails too, the next pause is twice as long, up to MaxCooldown.
// Any success ends all of it. An endpoint that did nothing but fail for
// DisableAfter is disabled: its messages are held until a person enables it.
type Breaker struct {
	Failures     int           // zero means 10
	Cooldown     time.Duration // zero means 5 minutes
	MaxCooldown  time.Duration // zero means an hour
	DisableAfter time.Duration // zero means 5 days
}

// WithDefaults fills in what is zero.
func (b Breaker) WithDefaults() Breaker {
	setDefault(&b.Failures, 10)
	setDefault(&b.Cooldown, 5*time.Minute)
	setDefault(&b.MaxCooldown, max(time.Hour, b.Cooldown))
	setDefault(&b.DisableAfter, 5*24*time.Hour)
	return b
}

// Validate takes a complete breaker.
func (b Breaker) Validate() error {
	if b.Failures < 1 || b.Cooldown < 0 || b.MaxCooldown < b.Cooldown || b.DisableAfter < 0 {
		return errors.New("webhook breaker: needs at least 1 failure and times that are not negative, the longest cool-down no shorter than the first")
	}
	return nil
}
