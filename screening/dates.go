package screening

// OutOfForce says why a term has no effect on a day.
type OutOfForce string

const (
	NotYet   OutOfForce = "not_yet"   // before its effective_from
	NoLonger OutOfForce = "no_longer" // from its sunset on
)

// dated reports whether the term is in force on some days only.
func (t *Term) dated() bool { return t.EffectiveFrom != "" || t.Sunset != "" }

// outOfForce is why the term has no effect on a day, "" when it is in force. A
// day that is not known puts no term out of force.
func (t *Term) outOfForce(day Day) OutOfForce {
	switch {
	case day == "":
		return ""
	case day < t.EffectiveFrom:
		return NotYet
	case t.Sunset != "" && day >= t.Sunset:
		return NoLonger
	}
	return ""
}

// setAside marks the finding of a term that is not in force. What the term found
// stays to be seen; it leads to nothing.
func (f *Finding) setAside(t *Term, why OutOfForce) {
	f.OutOfForce = why
	switch why {
	case NotYet:
		f.Reason = "not in force before " + string(t.EffectiveFrom) + ": " + f.Reason
	case NoLonger:
		f.Reason = "not in force since " + string(t.Sunset) + ": " + f.Reason
	}
}
