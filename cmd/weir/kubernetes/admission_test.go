package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/kubernetes"
	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/screening/packs"
	"weir/store"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	for _, name := range append(recorded, "job_1_22") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			r := c.ask(load(t, name))
			if !r.Response.Allowed || r.result() != "admitted" || r.Response.AuditAnnotations["screening"] == "" || len(r.Response.AuditAnnotations["spec-sha256"]) != 64 {
				t.Fatalf("an admitted one: %s", r.body)
			}
			if n := c.rows("screening"); n != 1 {
				t.Errorf("%d screenings", n)
			}
			var submitter, owner string
			if err := c.pool.QueryRow(t.Context(), `select submitter, on_behalf_of from screening`).Scan(&submitter, &owner); err != nil || submitter != "cluster" || owner != "ana" {
				t.Errorf("submitted by %s for %s, %v", submitter, owner, err)
			}
			r = c.ask(edit(load(t, name), escalates...))
			if r.Response.Allowed || r.result() != "pending" || r.Response.Status.Code != 403 ||
				!strings.Contains(r.message(), "people have to decide first: ethics:personal_data_inside. Due 20") ||
				!strings.Contains(r.message(), "https://weir.example/v1/screenings/"+r.Response.AuditAnnotations["screening"]) {
				t.Errorf("an escalated one: %s", r.body)
			}
			r = c.ask(edit(load(t, name), blocks...))
			if r.Response.Allowed || r.result() != "blocked" || r.Response.Status.Code != 403 ||
				!strings.Contains(r.message(), "blocked: safety:sexualised_minors. See weir explain ") {
				t.Errorf("a blocked one: %s", r.body)
			}
			r = c.ask(edit(load(t, name), "  - {tag: personal_data, state: absent, basis: structured}\n → "))
			if r.Response.Allowed || r.result() != "pending" || !strings.Contains(r.message(), "Not stated: /disclosures") {
				t.Errorf("an incomplete one: %s", r.body)
			}
		})
	}
}

// What people admit is admitted for as long as the manifest stays what it is.
func TestPeopleAdmit(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pending := func() tree { return edit(load(t, "pytorchjob"), escalates...) }
	if r := c.ask(pending()); r.Response.Allowed {
		t.Fatal(r.body)
	}
	bo := review.Principal{Subject: "bo", Project: "default", Scopes: review.Scopes}
	queue, err := c.desk.Reviews(t.Context(), bo, review.ReviewQuery{OpenOnly: true, Limit: 10})
	if err != nil || len(queue) != 1 {
		t.Fatalf("%d reviews, %v", len(queue), err)
	}
	if again := c.ask(pending()); again.Response.Allowed || c.rows("review") != 1 {
		t.Errorf("asked again: %s, %d reviews", again.body, c.rows("review"))
	}
	if _, err := c.desk.Vote(t.Context(), bo, queue[0].ID, review.VoteRequest{ExpectedVersion: queue[0].Version, SpecSHA256: queue[0].Screening.SpecSHA256,
		Choice: review.VoteAdmit, Reason: "Looked at it.", Terms: []string{"ethics:personal_data_inside"}}); err != nil {
		t.Fatal(err)
	}
	next := pending()
	put(objectOf(next), "another-uid", "metadata", "uid")
	put(objectOf(next), "help-desk-qq9zz", "metadata", "name")
	if r := c.ask(next); !r.Response.Allowed || r.result() != "admitted" {
		t.Errorf("after the vote: %s", r.body)
	}
	request(next)["dryRun"] = true
	if r := c.ask(next); !r.Response.Allowed {
		t.Errorf("a dry run after the vote: %s", r.body)
	}
	put(objectOf(next), "other.py", "spec", "pytorchReplicaSpecs", "Worker", "template", "spec", "containers", "0", "command", "2")
	request(next)["dryRun"] = false
	if r := c.ask(next); r.Response.Allowed || r.result() != "pending" {
		t.Errorf("another script under the same training spec: %s", r.body)
	}
}

func TestDryRunKeepsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for want, r := range map[string]tree{
		"admitted": load(t, "trainjob"), "pending": edit(load(t, "trainjob"), escalates...), "blocked": edit(load(t, "trainjob"), blocks...),
		"invalid": edit(load(t, "trainjob"), "owner: ana → owner: nobody"),
	} {
		request(r)["dryRun"] = true
		a := c.ask(r)
		if a.result() != want || a.Response.Allowed != (want == "admitted") {
			t.Errorf("want %s: %s", want, a.body)
		}
	}
	for _, table := range []string{"spec", "screening", "review", "idempotency", "audit_event", "delivery"} {
		if n := c.rows(table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	command := map[string]string{"job": "template/spec/containers/0/command/0", "jobset": "replicatedJobs/0/template/spec/template/spec/containers/0/command/0",
		"pytorchjob": "pytorchReplicaSpecs/Worker/template/spec/containers/0/command/0", "rayjob": "entrypoint", "trainjob": "trainer/command/0"}
	start := func(o tree) {
		spec := o["spec"].(tree)
		if o["kind"] == "PyTorchJob" {
			spec = spec["runPolicy"].(tree)
		}
		spec["suspend"] = false
	}
	for _, name := range recorded {
		asked := map[string]tree{
			"what runs changed": update(t, name, func(o tree) { put(o["spec"], "other", path(command[name])...) }),
			"it is started":     update(t, name, start),
			"the spec changed":  edit(update(t, name, func(tree) {}), "run_ref: nlp/help-desk@2026-11 → run_ref: nlp/other"),
			"the team changed":  update(t, name, func(o tree) { put(o, "other", "metadata", "labels", "weir.dev/team") }),
		}
		passes := map[string]tree{
			"a finalizer":    update(t, name, func(o tree) { put(o, []any{"x"}, "metadata", "finalizers") }),
			"another status": update(t, name, func(o tree) { put(o, "True", "status", "ready") }),
			"labels":         update(t, name, func(o tree) { put(o, "x", "metadata", "labels", "app") }),
			"stopped": func() tree {
				r := update(t, name, func(tree) {})
				start(request(r)["oldObject"].(tree))
				return r
			}(),
			"no spec before and after": func() tree {
				r := update(t, name, func(o tree) { delete(o["metadata"].(tree), "annotations") })
				delete(request(r)["oldObject"].(tree)["metadata"].(tree), "annotations")
				return r
			}(),
			"the status": func() tree {
				r := update(t, name, func(o tree) { put(o["spec"], "other", path(command[name])...) })
				request(r)["subResource"] = "status"
				return r
			}(),
		}
		// A gate that cannot answer shows which are asked about.
		down := on(t, failing{err: errors.New("away")}, reviewtest.Floor, pledgeYAML)
		for why, r := range asked {
			if a := down.ask(r); a.Response.Allowed || a.result() != "unavailable" {
				t.Errorf("%s, %s: %s", name, why, a.body)
			}
		}
		for why, r := range passes {
			if a := down.ask(r); !a.Response.Allowed || a.result() != "passed" {
				t.Errorf("%s, %s: %s", name, why, a.body)
			}
		}
	}
	c := newCluster(t)
	if a := c.ask(update(t, "job", start)); !a.Response.Allowed || a.result() != "admitted" {
		t.Errorf("started: %s", a.body)
	}
	if a := c.ask(edit(update(t, "job", func(tree) {}), blocks...)); a.Response.Allowed || a.result() != "blocked" {
		t.Errorf("changed to what is blocked: %s", a.body)
	}
}

func TestJobsAreGatedByLabel(t *testing.T) {
	t.Parallel()
	c := on(t, failing{err: errors.New("away")}, reviewtest.Floor, pledgeYAML)
	label := func(o tree, value any) {
		labels := at(o, "metadata", "labels").(tree)
		if labels["weir.dev/gate"] = value; value == nil {
			delete(labels, "weir.dev/gate")
		}
	}
	for value, want := range map[any]string{nil: "passed", "false": "passed", "true": "unavailable"} {
		r := load(t, "job")
		label(objectOf(r), value)
		if a := c.ask(r); a.result() != want {
			t.Errorf("created with %v: %s", value, a.body)
		}
	}
	if a := c.ask(update(t, "job", func(o tree) { label(o, nil) })); a.Response.Allowed || !strings.Contains(a.message(), "cannot be taken from a Job") {
		t.Errorf("the label taken away: %s", a.body)
	}
	r := update(t, "job", func(tree) {})
	label(request(r)["oldObject"].(tree), nil)
	if a := c.ask(r); a.result() != "unavailable" {
		t.Errorf("the label added: %s", a.body)
	}
	other := load(t, "pytorchjob")
	label(objectOf(other), "false")
	if a := c.ask(other); a.result() != "unavailable" {
		t.Errorf("a PyTorchJob that says it is not gated: %s", a.body)
	}
}

// A JobSet that the trainer makes out of a TrainJob was asked about with it; one
// that says so and comes from somebody else was not.
func TestControllers(t *testing.T) {
	t.Parallel()
	c := on(t, failing{err: errors.New("away")}, reviewtest.Floor, pledgeYAML)
	made := func(user, version, kind string, controller bool) tree {
		r := load(t, "jobset")
		delete(objectOf(r)["metadata"].(tree), "annotations")
		put(objectOf(r), []any{tree{"apiVersion": version, "kind": kind, "name": "x", "uid": "y", "controller": controller}}, "metadata", "ownerReferences")
		put(request(r), user, "userInfo", "username")
		return r
	}
	trainer := config.Controllers[0]
	if a := c.ask(made(trainer, "trainer.kubeflow.org/v1alpha1", "TrainJob", true)); !a.Response.Allowed || a.result() != "passed" {
		t.Errorf("made by the trainer: %s", a.body)
	}
	for why, r := range map[string]tree{
		"by anybody": made("mallory", "trainer.kubeflow.org/v1alpha1", "TrainJob", true),
		"owned by nothing": func() tree {
			r := made(trainer, "", "", true)
			delete(objectOf(r)["metadata"].(tree), "ownerReferences")
			return r
		}(),
		"owned by a Job":       made(trainer, "batch/v1", "Job", true),
		"owned by a lookalike": made(trainer, "trainer.example/v1alpha1", "TrainJob", true),
		"not its controller":   made(trainer, "trainer.kubeflow.org/v1alpha1", "TrainJob", false),
	} {
		if a := c.ask(r); a.Response.Allowed {
			t.Errorf("%s: %s", why, a.body)
		}
	}
}

// A person of people.yaml submits for themselves.
func TestUserIsOnBehalfOf(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for user, allowed := range map[string]bool{"ana@corp.example": true, "bo@corp.example": false, "ana": true, "system:serviceaccount:argo:workflow": true} {
		r := load(t, "rayjob")
		put(request(r), user, "userInfo", "username")
		if a := c.ask(r); a.Response.Allowed != allowed || !allowed && !strings.Contains(a.message(), "on_behalf_of of the training spec has to name you") {
			t.Errorf("%s: %s", user, a.body)
		}
	}
	r := update(t, "rayjob", func(o tree) { o["spec"].(tree)["suspend"] = false })
	put(request(r), "bo@corp.example", "userInfo", "username")
	if a := c.ask(r); !a.Response.Allowed {
		t.Errorf("bo starts what ana submitted: %s", a.body)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, x := range map[string]struct {
		review tree
		want   string
		code   int
	}{
		"no on_behalf_of":    {edit(load(t, "job"), "on_behalf_of: ana\n → "), "/on_behalf_of must name the person", 422},
		"an unknown owner":   {edit(load(t, "job"), "owner: ana → owner: mallory"), "/owner is not a person declared in people.yaml", 422},
		"another kind":       {with(load(t, "job"), "Deployment", "kind", "kind"), "this gate reads batch/v1 Job, ", 422},
		"another version":    {with(load(t, "trainjob"), "v2", "kind", "version"), "this gate reads batch/v1 Job, ", 422},
		"not what it says":   {with(load(t, "job"), "JobSet", "object", "kind"), "not what the request says", 422},
		"no object":          {with(load(t, "job"), nil, "object"), "the object cannot be read", 422},
		"no old object":      {with(load(t, "job"), "UPDATE", "operation"), "the old object cannot be read", 422},
		"a delete":           {with(load(t, "job"), "DELETE", "operation"), "is asked about CREATE and UPDATE", 422},
		"a connect":          {with(load(t, "job"), "CONNECT", "operation"), "is asked about CREATE and UPDATE", 422},
		"a scale":            {with(load(t, "pytorchjob"), "scale", "subResource"), "is asked about CREATE and UPDATE", 422},
		"an older interface": {load(t, "job_v1beta1"), "set admissionReviewVersions: [v1]", 422},
	} {
		if a := c.ask(x.review); a.Response.Allowed || !strings.Contains(a.message(), x.want) || a.Response.Status.Code != x.code {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if a := c.ask(load(t, "job_v1beta1")); a.APIVersion != "admission.k8s.io/v1beta1" { // or the message would not arrive
		t.Errorf("v1beta1: %s", a.body)
	}
	// Somebody else's run.
	airflow := review.Principal{Subject: "bo", Project: "default", Scopes: review.Scopes}
	mine := strings.NewReplacer("on_behalf_of: ana\n", "", "owner: ana", "owner: bo").Replace(at(objectOf(load(t, "job")), "metadata", "annotations", "weir.dev/spec").(string))
	if _, _, err := c.desk.Submit(t.Context(), airflow, []byte(mine), nil); err != nil {
		t.Fatal(err)
	}
	if a := c.ask(load(t, "job")); a.Response.Allowed || a.result() != "closed" || !strings.Contains(a.message(), "run_ref") {
		t.Errorf("a run_ref of somebody else: %s", a.body)
	}
}

// What is no question is no answer either: the API server then refuses by its failurePolicy.
func TestNoReview(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	good := string(encode(load(t, "job")))
	for name, body := range map[string]string{
		"nothing":           "",
		"half":              good[:len(good)/2],
		"a list":            "[]",
		"another kind":      strings.Replace(good, `"AdmissionReview"`, `"AdmissionReport"`, 1),
		"another interface": strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v2", 1),
		"no request":        `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"no uid":            string(encode(with(load(t, "job"), "", "uid"))),
		"a key twice":       strings.Replace(good, `"dryRun"`, `"uid":"x","dryRun"`, 1),
		"too large":         strings.Replace(good, `"dryRun"`, `"x":"`+strings.Repeat("x", 8<<20)+`","dryRun"`, 1),
	} {
		if r := c.send([]byte(body), ""); r.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, r.code, r.body)
		}
	}
	for _, query := range []string{"?timeout=soon", "?timeout=0s", "?timeout=-1s"} {
		if r := c.send([]byte(good), query); r.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, r.code, r.body)
		}
	}
	for _, req := range []*http.Request{httptest.NewRequest(http.MethodGet, kubernetes.Path, nil), httptest.NewRequest(http.MethodPost, "/v1/screenings", nil)} {
		rec := httptest.NewRecorder()
		if c.handler.ServeHTTP(rec, req); rec.Code != http.StatusNotFound {
			t.Errorf("%s %s: %d", req.Method, req.URL, rec.Code)
		}
	}
	if n := c.rows("screening"); n != 0 {
		t.Errorf("%d screenings", n)
	}
	// Of two members whose names differ in case, a lax reader would take the wrong one.
	twice := strings.Replace(good, `"metadata":{`, `"Metadata":{},"metadata":{`, 1)
	if r := c.send([]byte(twice), ""); !r.Response.Allowed {
		t.Errorf("a member of another name changed the answer: %s", r.body)
	}
}

func TestFailsClosed(t *testing.T) {
	t.Parallel()
	day := screening.Day("2026-11-01")
	for name, today := range map[string]func(context.Context) (screening.Day, error){
		"unavailable":     func(context.Context) (screening.Day, error) { return "", review.ErrUnavailable },
		"unknown error":   func(context.Context) (screening.Day, error) { return "", errors.New("password=hunter2") },
		"panic":           func(context.Context) (screening.Day, error) { panic("no such thing") },
		"nothing is kept": func(context.Context) (screening.Day, error) { return day, nil }, // the nil store panics
	} {
		c := on(t, breaking{today: today}, reviewtest.Floor, pledgeYAML)
		for _, dryRun := range []bool{false, true} {
			if dryRun && name == "nothing is kept" {
				continue
			}
			r := load(t, "job")
			request(r)["dryRun"] = dryRun
			a := c.ask(r)
			if a.Response.Allowed || a.result() != "unavailable" || a.Response.Status.Code != 503 || strings.Contains(a.body, "hunter2") ||
				!strings.Contains(a.message(), "nothing is known about this run") {
				t.Errorf("%s, dry run %v: %s", name, dryRun, a.body)
			}
		}
		if len(c.answered) == 0 || c.answered[0].Result != kubernetes.Unavailable || c.answered[0].Kind != "Job" {
			t.Errorf("%s: counted %v", name, c.answered)
		}
	}
	c := on(t, breaking{today: func(context.Context) (screening.Day, error) { return "", errors.New("the reason") }}, reviewtest.Floor, pledgeYAML)
	c.ask(load(t, "job"))
	if !strings.Contains(c.log.String(), "the reason") {
		t.Errorf("the log does not tell: %s", c.log)
	}
}

// The answer is there before the API server gives up.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for query, most := range map[string]time.Duration{"?timeout=1s": 800 * time.Millisecond, "?timeout=200ms": 160 * time.Millisecond, "": 9 * time.Second, "?timeout=30s": 29 * time.Second, "?timeout=10m": 29 * time.Second} {
		var left time.Duration
		c := on(t, breaking{today: func(ctx context.Context) (screening.Day, error) {
			until, _ := ctx.Deadline()
			left = time.Until(until)
			if left < time.Second { // wait as a database does that does not answer
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "", review.ErrUnavailable
		}}, reviewtest.Floor, pledgeYAML)
		if a := c.send(encode(load(t, "job")), query); a.Response.Allowed || a.result() != "unavailable" {
			t.Errorf("%s: %s", query, a.body)
		}
		if left <= 0 || left > most {
			t.Errorf("%s: %s for the desk", query, left)
		}
	}
}

func TestTooManyAtOnce(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	desk, err := review.NewDesk(breaking{today: func(context.Context) (screening.Day, error) {
		entered <- struct{}{}
		<-leave
		return "", review.ErrUnavailable
	}}, setup(t, reviewtest.Floor, pledgeYAML), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := kubernetes.New(desk, kubernetes.Config{Service: "cluster", InFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, kubernetes.Path+query, bytes.NewReader(encode(load(t, "job")))))
		return rec
	}
	var first sync.WaitGroup
	first.Go(func() { ask("") })
	<-entered
	if rec := ask("?timeout=50ms"); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "nothing was checked") {
		t.Errorf("beside a full house: %d %s", rec.Code, rec.Body)
	}
	close(leave)
	first.Wait()
}

// Nothing of the object comes back in what people read.
func TestNoEcho(t *testing.T) {
	t.Parallel()
	const evil = "EVIL\x1b[2J\u202e<script>"
	c := newCluster(t)
	hostile := map[string]func(tree){
		"a key of the spec": func(r tree) { annotate(r, func(s string) string { return s + "\"EVIL\\e[2J\": 1\n" }) },
		"a long key":        func(r tree) { annotate(r, func(s string) string { return s + strings.Repeat("EVIL", 100) + ": 1\n" }) },
		"the owner": func(r tree) {
			annotate(r, func(s string) string { return strings.Replace(s, "owner: ana", "owner: EVIL", 1) })
		},
		"a code": func(r tree) {
			annotate(r, func(s string) string { return strings.Replace(s, "kind: sft", "kind: EVIL", 1) })
		},
		"an input that is open": func(r tree) {
			annotate(r, func(s string) string {
				return strings.Replace(s, "inputs:\n", "inputs:\n  - {id: EVIL, kind: dataset, name: EVIL, disclosures: [{tag: personal_data, state: present, basis: structured, detail: EVIL}]}\n", 1)
			})
		},
		"an image":         func(r tree) { put(objectOf(r), evil, "spec", "template", "spec", "containers", "0", "image") },
		"a command":        func(r tree) { put(objectOf(r), evil, "spec", "template", "spec", "containers", "0", "command", "0") },
		"a container":      func(r tree) { put(objectOf(r), evil, "spec", "template", "spec", "containers", "0", "name") },
		"a member":         func(r tree) { put(objectOf(r), evil, "spec", evil) },
		"the name":         func(r tree) { put(objectOf(r), evil, "metadata", "name") },
		"the team":         func(r tree) { put(objectOf(r), evil, "metadata", "labels", "weir.dev/team") },
		"the kind":         func(r tree) { put(request(r), evil, "kind", "kind") },
		"the operation":    func(r tree) { put(request(r), evil, "operation") },
		"the subresource":  func(r tree) { put(request(r), evil, "subResource") },
		"the user":         func(r tree) { put(request(r), evil, "userInfo", "username") },
		"the annotation":   func(r tree) { annotate(r, func(string) string { return evil }) },
		"a number of text": func(r tree) { put(objectOf(r), evil, "spec", "template") },
	}
	for name, change := range hostile {
		r := load(t, "job")
		change(r)
		a := c.ask(edit0(r, escalates))
		if strings.Contains(a.body, "EVIL") || strings.Contains(a.body, "script") {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, want := range map[string][]string{
		"job": nil, "jobset": {"1 of this object's images"}, "rayjob": {"1 of this object's images"}, "trainjob": {"spec.runtimeRef names something"},
	} {
		got := c.ask(load(t, name)).Response.Warnings
		if len(got) != len(want) || len(want) > 0 && !strings.Contains(got[0], want[0]) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// With the shipped packs: a workload that is not declared is a question to the
// submitter, and one that is declared passes.
func TestShippedPacks(t *testing.T) {
	t.Parallel()
	var all []string
	names, err := fs.Glob(packs.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(name, ".cases.") && !strings.HasPrefix(name, "general_ethics") {
			data, err := packs.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(data))
		}
	}
	c := newCluster(t, all...)
	data, err := os.ReadFile("../../../testdata/specs/admitted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const declared = `inputs:
  - id: workload
    kind: code
    name: Fine-tuning scripts
    license: {declared: [{spdx: Apache-2.0}]}
    lineage: {}
    trust_remote_code: false
`
	for name, script := range map[string]string{
		"a command": "accelerate launch --config_file /etc/accelerate.yaml finetune.py --lr 1e-4 --lora-rank 16 --data /data/manuals.parquet",
		"a script":  "set -euo pipefail\npip install --no-deps peft==0.13.2\nfor i in 1 2; do\n  python -m train.sft \\\n    --epoch=$i --out=s3://models/workshop/${RUN_ID} || exit 1\ndone\n",
	} {
		r := load(t, "pytorchjob")
		delete(objectOf(r)["metadata"].(tree)["labels"].(tree), "weir.dev/team")
		for _, replica := range []string{"Master", "Worker"} {
			at(objectOf(r), "spec", "pytorchReplicaSpecs", replica, "template", "spec", "containers", "0").(tree)["command"] = []any{"bash", "-c", script}
		}
		annotate(r, func(string) string { return string(data) })
		a := c.ask(r)
		if a.result() != "pending" || !strings.Contains(a.message(), "Not stated: /inputs/") {
			t.Errorf("%s, not declared: %s", name, a.body)
		}
		annotate(r, func(s string) string { return strings.Replace(s, "inputs:\n", declared, 1) })
		if a := c.ask(r); !a.Response.Allowed {
			t.Errorf("%s, declared: %s", name, a.body)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	desk, err := review.NewDesk(breaking{}, setup(t, reviewtest.Floor, pledgeYAML), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]kubernetes.Config{"no service": {}, "an undeclared service": {Service: "nobody"}, "a person": {Service: "ana"}} {
		if _, err := kubernetes.New(desk, cfg); err == nil || !strings.Contains(err.Error(), "people.yaml declares") && !strings.Contains(err.Error(), "declared in people.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := kubernetes.New(nil, kubernetes.Config{Service: "cluster"}); err == nil {
		t.Error("no desk")
	}
}

// Nothing recalled is let in, also not by a dry run, and not again what was let in before.
func TestRecallIsEnforced(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	job := func() tree { return load(t, "trainjob") }
	if r := c.ask(job()); !r.Response.Allowed {
		t.Fatal(r.body)
	}
	made, err := c.desk.Recall(t.Context(), review.Principal{Subject: "bo", Project: "default", Scopes: review.Scopes},
		review.RecalledData{URI: "hf://example/help-desk-tickets"}, "a reason that is not for everybody")
	if err != nil || made.Revoked != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	for _, dry := range []bool{true, false} {
		r := job()
		request(r)["dryRun"] = dry
		a := c.ask(r)
		if a.Response.Allowed || a.result() != "blocked" || !strings.Contains(a.message(), "recall "+made.ID) || strings.Contains(a.message(), "not for everybody") {
			t.Errorf("dry run %t: %s", dry, a.body)
		}
	}
}

// A project that only reports elsewhere is enforced here: an allowed object
// cannot be told from one that was admitted.
func TestReportModeIsEnforced(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := c.desk.Setup()
	policies := policiesYAML + "projects: [{id: default, mode: report, until: " + time.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly) + "}]\n"
	var err error
	if s.Policies, err = review.LoadPolicies("policies.yaml", []byte(policies), s.People); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), c.pool.Config().ConnString(), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	desk, err := review.NewDesk(st, s, review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if c.handler, err = kubernetes.New(desk, config); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]tree{"pending": edit(load(t, "trainjob"), escalates...), "blocked": edit(load(t, "trainjob"), blocks...)} {
		for _, dry := range []bool{true, false} {
			request(r)["dryRun"] = dry
			if a := c.ask(r); a.result() != want || a.Response.Allowed {
				t.Errorf("want %s, dry run %t: %s", want, dry, a.body)
			}
		}
	}
}
