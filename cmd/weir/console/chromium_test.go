//go:build browser

package console_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser of its own that is driven by the DevTools protocol over
// a pair of pipes: messages in JSON, each ended by a zero byte. There is no port
// that others could reach, and no library between the test and the browser.
type chromium struct {
	testing.TB
	out io.Writer

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	events  []event // that nobody waited for yet
	arrived chan struct{}
	ended   error
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

type event struct {
	SessionID string
	Method    string
	Params    json.RawMessage
}

// patience bounds every wait, so that a page that hangs fails with a reason.
const patience = 30 * time.Second

func newChromium(t testing.TB) *chromium {
	t.Helper()
	path := cmp.Or(os.Getenv("WEIR_CHROMIUM"), "chromium")
	if _, err := exec.LookPath(path); err != nil {
		t.Fatalf("browser tests need Chromium: run make test-browser, or set WEIR_CHROMIUM to it: %v", err)
	}
	profile, err := os.MkdirTemp("", "weir-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--remote-debugging-pipe", "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--mute-audio",
		"--hide-scrollbars", "--user-data-dir=" + profile, "about:blank"}
	if os.Getuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // it refuses to run as root with one
	}
	toRead, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.ExtraFiles = []*os.File{toRead, toWrite} // 3 and 4
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toRead.Close()
	toWrite.Close()
	c := &chromium{TB: t, out: out, waiting: map[int]chan reply{}, arrived: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() { defer close(read); c.read(in) }()
	t.Cleanup(func() {
		out.Close() // it ends when nobody drives it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-read
		in.Close()
		// Processes of its own may still write into the profile: it is gone when they are.
		limit, again := time.NewTimer(patience), time.NewTicker(5*time.Millisecond)
		defer limit.Stop()
		defer again.Stop()
		for err := os.RemoveAll(profile); err != nil; err = os.RemoveAll(profile) {
			select {
			case <-again.C:
			case <-limit.C:
				t.Errorf("the browser's profile cannot be removed: %v", err)
				return
			}
		}
		if t.Failed() {
			t.Logf("chromium said: %s", said.Bytes()[:min(2000, said.Len())])
		}
	})
	return c
}

func (c *chromium) read(in io.Reader) {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			c.ended = fmt.Errorf("chromium ended: %w", err)
			for id, ch := range c.waiting {
				delete(c.waiting, id)
				close(ch)
			}
			c.mu.Unlock()
			return
		}
		var m struct {
			ID int
			reply
			event
		}
		if err := json.Unmarshal(raw[:len(raw)-1], &m); err != nil {
			continue
		}
		c.mu.Lock()
		if ch := c.waiting[m.ID]; m.ID != 0 && ch != nil {
			delete(c.waiting, m.ID)
			ch <- m.reply
		} else if m.ID == 0 {
			c.events = append(c.events, m.event)
			select {
			case c.arrived <- struct{}{}:
			default:
			}
		}
		c.mu.Unlock()
	}
}

// call runs a command and reads its result into result, if that is not nil.
func (c *chromium) call(session, method string, params, result any) {
	c.Helper()
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = ch
	c.mu.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	raw, err := json.Marshal(message)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.out.Write(append(raw, 0)); err != nil {
		c.Fatalf("%s: %v", method, err)
	}
	select {
	case r, ok := <-ch:
		if !ok {
			c.Fatalf("%s: %v", method, c.ended)
		}
		if r.Error != nil {
			c.Fatalf("%s: %s", method, r.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(r.Result, result); err != nil {
				c.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(patience):
		c.Fatalf("%s: no answer", method)
	}
}

// tab is one page of a profile of its own.
type tab struct {
	*chromium
	session string
	origin  string // the only one that may be asked for anything
	dir     string // where pictures go
}

func (c *chromium) tab(origin string) *tab {
	c.Helper()
	var context struct{ BrowserContextID string }
	c.call("", "Target.createBrowserContext", nil, &context)
	var target struct{ TargetID string }
	c.call("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID}, &target)
	var session struct{ SessionID string }
	c.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	t := &tab{chromium: c, session: session.SessionID, origin: origin, dir: os.Getenv("WEIR_SCREENSHOTS")}
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		t.do(domain+".enable", nil, nil)
	}
	t.size(1280, 900)
	return t
}

func (t *tab) do(method string, params, result any) {
	t.Helper()
	t.call(t.session, method, params, result)
}

func (t *tab) size(width, height int) {
	t.Helper()
	t.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
}

func (t *tab) theme(name string) {
	t.Helper()
	t.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// wait waits for an event; those before it are kept.
func (t *tab) wait(what string, want func(event) bool) {
	t.Helper()
	timeout := time.After(patience)
	seen := 0
	for {
		t.mu.Lock()
		for ; seen < len(t.events); seen++ {
			if e := t.events[seen]; e.SessionID == t.session && want(e) {
				t.events[seen].Method = "seen " + e.Method
				t.mu.Unlock()
				return
			}
		}
		err := t.ended
		t.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-t.arrived:
		case <-timeout:
			t.Fatalf("waited for %s in vain, at %s: %s", what, t.eval("location.href"), t.eval("document.body.innerText"))
		}
	}
}

// loads runs what makes the page load another one, and waits for that.
func (t *tab) loads(act func()) {
	t.Helper()
	t.mu.Lock()
	for i := range t.events {
		if t.events[i].Method == "Page.loadEventFired" {
			t.events[i].Method = "seen"
		}
	}
	t.mu.Unlock()
	act()
	t.wait("a page", func(e event) bool { return e.Method == "Page.loadEventFired" })
}

func (t *tab) open(path string) {
	t.Helper()
	t.loads(func() { t.do("Page.navigate", map[string]any{"url": t.origin + path}, nil) })
}

// focused waits until an element that a selector finds has the focus, which a
// browser gives some time after the page has loaded.
func (t *tab) focused(selector string) {
	t.Helper()
	t.becomes(fmt.Sprintf("document.activeElement?.matches(%q)", selector), "true")
}

// becomes waits until an expression has a value, also over pages that lead on.
func (t *tab) becomes(expression, want string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if t.eval(expression) == want {
			return
		}
	}
	t.Fatalf("%s does not become %s but is %s, at %s", expression, want, t.eval(expression), t.eval("location.href"))
}

// eval gives the value of an expression as text.
func (t *tab) eval(expression string) string {
	t.Helper()
	var v any
	t.evalInto(expression, &v)
	return fmt.Sprint(v)
}

func (t *tab) evalInto(expression string, into any) {
	t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	t.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		t.Fatalf("%s: %s %s", expression, r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	}
	if len(r.Result.Value) == 0 {
		return
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

// click clicks in the middle of the first element that a selector finds, as a person does.
func (t *tab) click(selector string) {
	t.Helper()
	var at []float64
	// The browser finds what is under the mouse by its last frame: it has to have drawn one since.
	t.evalInto(fmt.Sprintf(`(async () => { const e = document.querySelector(%q); if (!e) return null;
		e.scrollIntoView({block: "center"});
		for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector), &at)
	if len(at) != 2 {
		t.Fatalf("nothing to click at %s: %s", selector, t.eval("document.body.innerText"))
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		t.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

func (t *tab) typeText(text string) {
	t.Helper()
	t.do("Input.insertText", map[string]any{"text": text}, nil)
}

var keyCodes = map[string]int{"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "j": 74, "k": 75}

// press presses a key and lets it go.
func (t *tab) press(key string) {
	t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": keyCodes[key]}
	switch key {
	case "Enter":
		down["text"] = "\r"
	case " ", "j", "k":
		down["text"] = key
	}
	t.do("Input.dispatchKeyEvent", down, nil)
	t.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": keyCodes[key]}, nil)
}

// tabTo presses Tab until an element that a selector finds has the focus.
func (t *tab) tabTo(selector string) {
	t.Helper()
	for range 200 {
		t.press("Tab")
		if t.eval(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == "true" {
			return
		}
	}
	t.Fatalf("Tab does not reach %s", selector)
}

// shot keeps a picture of the whole page.
func (t *tab) shot(name string) {
	t.Helper()
	if t.dir == "" {
		return
	}
	var metrics struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	t.do("Page.getLayoutMetrics", nil, &metrics)
	var picture struct{ Data string }
	t.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0,
		"width": metrics.CSSContentSize.Width, "height": min(metrics.CSSContentSize.Height, 6000), "scale": 1}}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.dir, name+".png"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// quiet fails when anything happened that should not on any page: a dialog, an
// error or warning of the console, an exception, a request to another host.
func (t *tab) quiet(allowedStatus ...int) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		if e.SessionID != t.session {
			continue
		}
		switch e.Method {
		case "Page.javascriptDialogOpening", "Runtime.exceptionThrown":
			t.Errorf("%s: %s", e.Method, e.Params)
		case "Runtime.consoleAPICalled":
			t.Errorf("the console says: %s", e.Params)
		case "Log.entryAdded":
			allowed := false
			for _, status := range allowedStatus {
				allowed = allowed || strings.Contains(string(e.Params), fmt.Sprintf("status of %d", status))
			}
			if !allowed {
				t.Errorf("the log says: %s", e.Params)
			}
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &p); err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(p.Request.URL, t.origin+"/") {
				t.Errorf("a request to %s", p.Request.URL)
			}
		}
	}
}
