package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"weir/review"
)

// burstSeconds is how many seconds' worth of requests somebody may send at once: a
// sweep that starts a hundred runs is not what the limit is against.
const burstSeconds = 10

// pace keeps one caller from taking the gate from the others. A caller is a person
// or service in a project, however many keys and tokens they have. There are no more
// of them than are declared or have keys, so none is ever forgotten.
type pace struct {
	limit   rate.Limit // requests a second; 0 = as many as they like
	now     func() time.Time
	mu      sync.Mutex
	callers map[caller]*rate.Limiter
}

type caller struct{ project, id string }

func newPace(perSecond int, now func() time.Time) *pace {
	return &pace{limit: rate.Limit(perSecond), now: now, callers: map[caller]*rate.Limiter{}}
}

// allows counts a request of somebody, and reports whether it is not one too many.
func (p *pace) allows(people *review.People, who review.Principal) bool {
	if p.limit == 0 {
		return true
	}
	id, _ := people.Subject(who.Subject)
	of := caller{who.Project, id}
	p.mu.Lock()
	l, ok := p.callers[of]
	if !ok {
		l = rate.NewLimiter(p.limit, burstSeconds*int(p.limit))
		p.callers[of] = l
	}
	p.mu.Unlock()
	return l.AllowN(p.now(), 1)
}
