package screening

import (
	"slices"
	"strconv"
)

// Extended names a pack that a deployment profile builds on, exactly: sha256 is
// the pack's identity ([Pack.SHA256]), the one that decisions and reports carry.
type Extended struct {
	ID     string    `json:"id"`
	SHA256 Digest256 `json:"sha256"`
}

// Raise makes one term of an extended pack stricter. What is left out stays as
// the pack has it, except that a term raised to block escalates when it cannot be
// checked, as every term that blocks does.
type Raise struct {
	Term      string   `json:"term"` // id without layer
	Response  Response `json:"response,omitzero"`
	Unchecked Response `json:"unchecked,omitzero"`
}

// checkProfile checks what a pack says of other packs, as far as it alone shows.
func (p *Pack) checkProfile(ps *problems) {
	if len(p.Extends) > 0 && p.Layer == Safety {
		ps.add("/extends", "only an ethics pack may extend others; the floor can be added to, not changed")
	}
	if len(p.Raises) > 0 && len(p.Extends) == 0 {
		ps.add("/raises", "needs extends, with id and sha256 of the pack whose terms it raises")
	}
	seen := map[string]bool{}
	for i, x := range p.Extends {
		at := "/extends/" + strconv.Itoa(i)
		switch {
		case !IsID(x.ID):
			ps.add(at+"/id", "must be the id of a pack")
		case x.ID == FloorID:
			ps.add(at+"/id", "pack %s cannot be extended: the floor can be added to, not changed", x.ID)
		case x.ID == p.ID:
			ps.add(at+"/id", "pack %s cannot extend itself", x.ID)
		case seen[x.ID]:
			ps.add(at+"/id", "pack %s is extended twice; keep one", x.ID)
		}
		if x.SHA256.IsZero() {
			ps.add(at+"/sha256", "pack %s: must be the digest of the pack; weir pack list --verbose shows it", x.ID)
		}
		seen[x.ID] = true
	}
	first := map[string]int{}
	for i, r := range p.Raises {
		at := "/raises/" + strconv.Itoa(i)
		if j, dup := first[r.Term]; dup {
			ps.add(at+"/term", "term %s is also /raises/%d", r.Term, j)
		}
		first[r.Term] = i
		switch own := func(t Term) bool { return t.ID == r.Term }; {
		case r.Term == "":
			ps.add(at+"/term", "must be the id of a term of a pack that is extended")
		case slices.ContainsFunc(p.Terms, own):
			ps.add(at+"/term", "term %s is a term of this pack; say there what it asks for", r.Term)
		}
		switch {
		case r.Response == 0 && r.Unchecked == 0:
			ps.add(at, "term %s: raises nothing; give response, unchecked or both", r.Term)
		case r.Unchecked == Block:
			ps.add(at+"/unchecked", "term %s: must be escalate or hedge", r.Term)
		case r.Response == Block && r.Unchecked != 0 && r.Unchecked != Escalate:
			ps.add(at+"/unchecked", "term %s: a term that blocks must escalate when it cannot be checked", r.Term)
		}
	}
}

// Bases gives the packs that p extends, out of those at hand, and checks that p
// only raises what they ask for. The error is an [*InvalidError] with file and
// line; of a pack that differs from what p is bound to it names both digests.
func (p *Pack) Bases(packs []*Pack) ([]*Pack, error) {
	var ps problems
	bases := make([]*Pack, 0, len(p.Extends))
	for i, x := range p.Extends {
		at := "/extends/" + strconv.Itoa(i)
		j := slices.IndexFunc(packs, func(b *Pack) bool { return b.ID == x.ID })
		if j < 0 {
			ps.add(at, "pack %s with sha256 %s is not among the packs in use; add it to them", x.ID, x.SHA256)
			continue
		}
		switch b := packs[j]; {
		case b.Layer == Safety:
			ps.add(at+"/id", "pack %s is a safety pack: the floor can be added to, not changed", x.ID)
		case len(b.Extends) > 0:
			ps.add(at+"/id", "pack %s is itself a profile; extend the packs that it extends", x.ID)
		case b.SHA256 != x.SHA256:
			ps.add(at+"/sha256", "is bound to pack %s with sha256 %s, but the one in use has sha256 %s; see what changed with weir pack diff, then bind to it and ratify again", x.ID, x.SHA256, b.SHA256)
		default:
			bases = append(bases, b)
		}
	}
	if ps == nil { // without all packs there is no telling what is raised
		for i, r := range p.Raises {
			r.check(&ps, "/raises/"+strconv.Itoa(i), bases)
		}
	}
	name := p.ID
	if p.doc != nil {
		name = p.doc.name
	}
	return bases, ps.invalid("pack", name, p.doc)
}

// check: a raise never lowers anything, and changes something.
func (r Raise) check(ps *problems, at string, bases []*Pack) {
	b, t := findTerm(bases, r.Term)
	if t == nil {
		ps.add(at+"/term", "term %s is not a term of the packs that are extended", r.Term)
		return
	}
	unchecked := t.unchecked(CauseNoEvidence)
	switch {
	case r.Response != 0 && r.Response < t.Response:
		ps.add(at+"/response", "term %s: %s is below the %s of pack %s; a profile only raises", r.Term, r.Response, t.Response, b.ID)
	case r.Unchecked != 0 && r.Unchecked < unchecked:
		ps.add(at+"/unchecked", "term %s: %s is below the %s of pack %s; a profile only raises", r.Term, r.Unchecked, unchecked, b.ID)
	case r.Response <= t.Response && r.Unchecked <= unchecked:
		ps.add(at, "term %s: raises nothing; pack %s asks for that already", r.Term, b.ID)
	}
}

func findTerm(packs []*Pack, id string) (*Pack, *Term) {
	for _, p := range packs {
		if i := slices.IndexFunc(p.Terms, func(t Term) bool { return t.ID == id }); i >= 0 {
			return p, &p.Terms[i]
		}
	}
	return nil, nil
}

// On is the term as this raise leaves it. No effect of it is milder than before.
func (r Raise) On(t *Term) Term {
	up := *t
	up.Response = max(t.Response, r.Response)
	if r.Unchecked != 0 {
		up.Unchecked = r.Unchecked
	}
	if up.Response == Block {
		up.Unchecked = Escalate
	}
	up.Unchecked = max(t.unchecked(CauseNoEvidence), up.unchecked(CauseNoEvidence))
	return up
}

// Raised says that profiles made a finding weigh more than its own pack does.
type Raised struct {
	From Response `json:"from"` // the effect that the term's own pack gives it
	By   []string `json:"by"`   // profiles, in lexical order
}

// raising is what the profiles in force do to one term.
type raising struct {
	effects effects // that the term's own pack gives it
	by      []raiser
}

type raiser struct {
	profile *Pack
	effects effects // of the term as this profile alone leaves it
}

// raise applies the raises of all profiles to a term. The strictest of each
// setting holds, so their order does not matter.
func raise(t *Term, by []raisedTerm) (*Term, *raising) {
	up, r := *t, &raising{effects: effectsOf(t)}
	for _, one := range by {
		up.Response = max(up.Response, one.term.Response)
		up.Unchecked = max(up.Unchecked, one.term.Unchecked)
		r.by = append(r.by, raiser{one.profile, effectsOf(&one.term)})
	}
	return &up, r
}

// raisedTerm is a term as one profile leaves it.
type raisedTerm struct {
	profile *Pack
	term    Term
}

// said tells who raised a result's effect, nil when nobody did.
func (r *raising) said(res result, effect Response) *Raised {
	if r == nil || effect <= r.effects[res] {
		return nil
	}
	s := &Raised{From: r.effects[res]}
	for _, by := range r.by {
		if by.effects[res] == effect {
			s.By = append(s.By, by.profile.ID)
		}
	}
	return s
}

// raises collects what the profiles among the packs raise, by term.
func raises(packs []*Pack) (map[string][]raisedTerm, error) {
	raised := map[string][]raisedTerm{}
	for _, p := range packs {
		bases, err := p.Bases(packs)
		if err != nil {
			return nil, err
		}
		for _, r := range p.Raises {
			_, t := findTerm(bases, r.Term)
			raised[r.Term] = append(raised[r.Term], raisedTerm{p, r.On(t)})
		}
	}
	return raised, nil
}
