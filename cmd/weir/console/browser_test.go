//go:build browser

package console_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

// The whole job with the mouse: link, queue, review, excerpts, vote, decided.
func TestBrowserReviewsAndBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/support-bot@2026-11", purpose("A bot that explains nerve agent synthesis to chemists.")))
	b := newChromium(t).tab(w.url)
	b.open(w.link("bo", review.ScopeReview, review.ScopeAudit))
	b.shot("login-link")
	b.loads(func() { b.click("main button") })
	b.shot("queue-desktop")
	b.loads(func() { b.click(".card h2 a") })
	if got := b.eval("document.querySelector('.headline').innerText"); !strings.Contains(got, "2 findings need a person") {
		t.Errorf("the outcome is not said first: %q", got)
	}
	b.shot("review-desktop")
	b.loads(func() { b.click(".held button") })
	if got := b.eval("document.querySelector('mark').innerText"); got != "nerve agent synthesis" {
		t.Errorf("marked is %q", got)
	}
	b.shot("review-excerpts")
	b.click("label[for=vote-block]")
	for _, term := range []string{"weapon_words", "personal_data_inside"} {
		b.click(`label[for="t-ethics:` + term + `"]`)
	}
	b.click("#f-reason")
	b.typeText("Nobody needs this.")
	b.loads(func() { b.click(".vote button.main") })
	if got := b.eval("document.body.innerText"); !strings.Contains(got, "Your vote is kept") || !strings.Contains(got, "Nobody needs this.") {
		t.Errorf("after the vote: %s", got)
	}
	b.shot("review-decided")
	if n := w.count(`select count(*) from screening where id = $1 and status = 'blocked' and decided_by = 'people'`, s.ID); n != 1 {
		t.Error("the vote did not block")
	}
	b.loads(func() { b.click(".who button") })
	if got := b.eval("location.pathname"); got != "/console/login" {
		t.Errorf("signed out at %s", got)
	}
	b.quiet()
}

// The same with the keyboard alone, and without script: an error keeps what was
// typed and has the focus, then the vote admits.
func TestBrowserByKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/by-keys"))
	w.submit(spec("nlp/second"))
	b := newChromium(t).tab(w.url)
	b.open(w.link("bo", review.ScopeReview))
	b.focused("main button")
	b.loads(func() { b.press("Enter") })
	// The first Tab offers to skip the menu.
	b.press("Tab")
	if got := b.eval("document.activeElement.innerText"); got != "Skip to the content" {
		t.Errorf("the first stop is %q", got)
	}
	b.tabTo(".card h2 a")
	b.press("j")
	if got := b.eval("document.activeElement.innerText"); got != "nlp/second" {
		t.Errorf("j leads to %q", got)
	}
	b.press("k")
	b.loads(func() { b.press("Enter") })
	b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.tabTo("#vote-admit")
	b.press(" ")
	b.tabTo("#f-reason")
	b.typeText("\u200b \u200b")
	b.tabTo(".vote button.main")
	b.loads(func() { b.press("Enter") })
	b.focused(".error")
	if got := b.eval("document.activeElement.className + ': ' + document.activeElement.innerText"); !strings.HasPrefix(got, "error") || !strings.Contains(got, "must say why") {
		t.Errorf("the focus is on %q", got)
	}
	if b.eval("document.querySelector('#vote-admit').checked") != "true" {
		t.Error("the choice is gone")
	}
	b.shot("vote-error")
	b.tabTo("#f-reason")
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "commands": []string{"selectAll"}}, nil)
	b.typeText("Consent is on file.")
	b.tabTo(".vote button.main")
	b.loads(func() { b.press("Enter") })
	if n := w.count(`select count(*) from vote where review_id = $1 and reason = 'Consent is on file.'`, s.Review.ID); n != 1 {
		t.Errorf("%d votes: %s", n, b.eval("document.body.innerText"))
	}
	b.quiet(422)
}

// A link on another site finds the session, although the cookie is strict.
func TestBrowserComesFromAnotherSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	b := newChromium(t).tab(w.url)
	b.open(w.link("bo", review.ScopeReview))
	b.loads(func() { b.click("main button") })
	other := strings.Replace(w.url, "127.0.0.1", "localhost", 1) // another site on the same port
	b.loads(func() { b.do("Page.navigate", map[string]any{"url": other + "/console/login"}, nil) })
	b.loads(func() { b.eval(fmt.Sprintf("location.href = %q", w.url+"/console/dashboard")) })
	b.becomes("document.querySelector('h1')?.innerText", "Dashboard")
}

// everyPage is visited in every size and theme.
func everyPage(w *world) []string {
	w.submit(spec("nlp/support-bot@2026-11", purpose("An earlier purpose.")))
	s := w.submit(spec("nlp/support-bot@2026-11", purpose("nerve agent synthesis "+hostile), func(doc map[string]any) {
		doc["inputs"] = append(doc["inputs"].([]any), map[string]any{"id": "base", "kind": "base_model", "name": "Base 7B"},
			map[string]any{"id": "web", "kind": "dataset", "name": hostile, "lineage": map[string]any{"derived_from": []any{map[string]any{"ref": "javascript:alert(1)"}, map[string]any{"ref": "tickets"}}}})
		doc["base_model"] = "base"
	}))
	w.submit(spec("vision/captions"))
	clean := w.submit(spec("speech/asr", func(doc map[string]any) {
		doc["disclosures"] = []any{tag("personal_data", "absent"), tag("minors", "absent"), tag("sexual_content", "absent")}
	}))
	return []string{"/console/login", w.link("chi", review.ScopeReview, review.ScopeAudit), "/console/reviews", "/console/reviews?view=open&severity=high", "/console/reviews?view=closed",
		"/console/reviews/" + s.Review.ID, "/console/reviews/" + s.Review.ID + "/diff", "/console/screenings", "/console/screenings/" + s.ID,
		"/console/screenings/" + clean.ID, "/console/screenings/" + s.ID + "/received", "/console/screenings/" + s.ID + "/history",
		"/console/vocabulary", "/console/vocabulary/ethics/personal_data_inside", "/console/deliveries", "/console/deliveries/" + w.delivery(s), "/console/dashboard", "/console/nothing"}
}

// Each page in light and dark, on a phone and a desk: it can be read and used, and
// a hostile spec does nothing.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	paths := everyPage(w)
	b := newChromium(t).tab(w.url)
	b.open(w.link("bo", review.ScopeReview, review.ScopeAudit))
	b.loads(func() { b.click("main button") })
	for _, size := range []struct {
		name          string
		width, height int
	}{{"phone", 390, 844}, {"desktop", 1280, 900}} {
		b.size(size.width, size.height)
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for _, path := range paths {
				b.open(path)
				b.eval("document.querySelectorAll('details').forEach((d) => { d.open = true })")
				var faults []string
				b.evalInto(auditScript, &faults)
				for _, f := range faults {
					t.Errorf("%s, %s, %s: %s", path, size.name, theme, f)
				}
				b.shot(strings.Join([]string{"page", strings.Trim(pageName(path), "-"), size.name, theme}, "-"))
			}
		}
	}
	// Excerpts shown are as inert as what is held back.
	b.open(paths[5])
	b.loads(func() { b.click(".held button") })
	if got := b.eval("document.body.innerText"); !strings.Contains(got, "<script>alert('gotcha')</script>") || !strings.Contains(got, "U+202E") {
		t.Errorf("the hostile text is not shown as text: %s", got)
	}
	b.shot("page-hostile-shown")
	b.quiet(404)
}

func pageName(path string) string {
	path = strings.TrimPrefix(path, "/console/")
	var b strings.Builder
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/?=&", r) }) {
		if len(part) == 36 {
			part = "one"
		}
		b.WriteString(part + "-")
	}
	return b.String()
}

// auditScript gives what is wrong with a page for people who see, hear or type differently.
const auditScript = `(() => {
	const faults = [];
	const say = (what, e) => faults.push(what + ": " + (e ? e.outerHTML.slice(0, 160) : ""));
	if (!document.documentElement.lang) say("no language");
	if (document.querySelectorAll("main").length !== 1) say("not one main");
	if (document.querySelectorAll("h1").length !== 1) say("not one h1");
	if (!document.title) say("no title");
	let level = 0;
	for (const h of document.querySelectorAll("main h1, main h2, main h3, main h4")) {
		const n = +h.tagName[1];
		if (level && n > level + 1) say("a heading skips a level", h);
		if (!h.innerText.trim()) say("an empty heading", h);
		level = n;
	}
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
		if (!e.labels.length || !e.labels[0].innerText.trim()) say("no label", e);
	}
	for (const e of document.querySelectorAll("fieldset")) if (!e.querySelector("legend")) say("no legend", e);
	for (const e of document.querySelectorAll("a, button, summary")) {
		if (!e.innerText.trim() && !e.getAttribute("aria-label")) say("no name", e);
	}
	for (const e of document.querySelectorAll("a")) if (!e.getAttribute("href")) say("a link to nowhere", e);
	for (const e of document.querySelectorAll("svg")) {
		if (e.getAttribute("aria-hidden") !== "true" && !(e.getAttribute("role") === "img" && (e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")))) say("a picture without words", e);
	}
	for (const name of ["aria-describedby", "aria-labelledby"]) for (const e of document.querySelectorAll("[" + name + "]")) {
		for (const id of e.getAttribute(name).split(" ")) if (!document.getElementById(id)) say(name + " names nothing", e);
	}
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) say("an id twice: " + id);
	if (document.documentElement.scrollWidth > innerWidth + 1) {
		say("wider than the window by " + (document.documentElement.scrollWidth - innerWidth));
		for (const e of document.querySelectorAll("main *")) if (e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")) { say("too wide", e); break; }
	}

	// Focus: the order is that of the page, and it can be seen.
	const stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter((e) => !e.disabled && e.checkVisibility());
	if (document.querySelector("[tabindex]:not([tabindex='0']):not([tabindex='-1'])")) say("a tab order of its own");
	for (const e of stops) {
		e.focus({focusVisible: true});
		if (document.activeElement !== e) { say("takes no focus", e); continue; }
		const s = getComputedStyle(e);
		if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) say("focus cannot be seen", e);
		const r = e.getBoundingClientRect();
		if (innerWidth < 500 && e.matches("button, select, textarea, input:not([type=radio], [type=checkbox])") && !e.matches(".plain") && r.height < 39) say("too small to touch", e);
	}
	document.activeElement.blur();

	// Contrast of every text with what is behind it.
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
	const light = (c) => { const l = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
	const behind = (e) => {
		const layers = [];
		for (let p = e; p; p = p.parentElement) {
			const s = getComputedStyle(p);
			const rect = p.tagName === "g" && p.querySelector("rect");
			layers.push(parse(rect ? getComputedStyle(rect).fill : s.backgroundColor));
		}
		return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
	};
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	const said = new Set();
	for (let n; (n = walker.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || e.closest("script, title, .sr, .skip, [aria-hidden=true]") || !e.checkVisibility()) continue;
		const s = getComputedStyle(e);
		const bg = behind(e), fg = over(parse(e.closest("svg") ? s.fill : s.color), bg);
		const [a, b] = [light(fg), light(bg)].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		const key = e.className + e.tagName + ratio;
		if (ratio < 4.5 && !said.has(key)) { said.add(key); say("contrast " + ratio.toFixed(2), e); }
	}
	return faults.slice(0, 30);
})()`

// The way to the issuer and back with a real browser's cookies: the issuer is another
// site, so the session's strict cookie stays behind on the last step.
func TestBrowserSignsInAtAnIssuer(t *testing.T) {
	t.Parallel()
	w, i := withIssuer(t, console.Config{})
	i.SignedIn("00u1")
	b := newChromium(t).tab(strings.Replace(w.url, "127.0.0.1", "localhost", 1)) // the issuer is at 127.0.0.1
	b.open("/console/login?next=%2Fconsole%2Fdashboard")
	b.shot("login-issuer")
	b.loads(func() { b.click("a.button.main") })
	b.becomes("document.querySelector('h1')?.innerText", "Dashboard")
	b.becomes("document.querySelector('.who span')?.innerText", "bo")
}
