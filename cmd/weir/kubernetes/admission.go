package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
	"weir/screening"
)

// Path is where the API server asks.
const Path = "/hooks/kubernetes/validate"

const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
	// reviewVersionBefore is understood as far as it takes to refuse it in kind.
	reviewVersionBefore = "admission.k8s.io/v1beta1"
	// An object and its predecessor, each at most what etcd keeps (1.5 MiB), as JSON.
	maxReviewBytes = 7 << 20
)

// Config tunes a Handler.
type Config struct {
	// Service is the id of the declared service that submits for the cluster. Required.
	Service string
	// Project is where screenings are kept. Default "default".
	Project string
	// Controllers are the user names of controllers that make objects of a gated
	// kind out of other gated objects, as the trainer makes JobSets out of
	// TrainJobs. What such a user makes, and a gated object owns, was asked about.
	Controllers []string
	// BaseURL is where people reach the gate; messages point there. May be empty.
	BaseURL string
	// Timeout bounds an answer when the API server names no limit. Default 10 s,
	// which is also the default of a webhook configuration.
	Timeout time.Duration
	// InFlight bounds the questions that are worked on at once. Default 32.
	InFlight int
	// Answered is told of every answer, for metrics. May be nil.
	Answered func(Answered)
	// Log gets one event per question. Default slog.Default().
	Log *slog.Logger
}

// Answered is one answer in a few words.
type Answered struct {
	Kind    string // of the object, "unknown" when the gate does not read it
	Result  Result
	Took    time.Duration
	Allowed bool
}

// Result says how a question ended.
type Result string

const (
	Passed      Result = "passed"      // not asked about: nothing that trains changed
	Admitted    Result = "admitted"    // the gate is open
	Blocked     Result = "blocked"     // by the packs, or by people
	Pending     Result = "pending"     // people have to decide
	Closed      Result = "closed"      // expired, superseded, or another's run
	Invalid     Result = "invalid"     // the object or its spec has to be corrected
	Unavailable Result = "unavailable" // nothing is known
)

// Handler answers AdmissionReviews. It has to stand behind a check of the
// caller's certificate; see [Server].
type Handler struct {
	desk  *review.Desk
	cfg   Config
	slots chan struct{}
}

// CheckService says why a service cannot submit for the cluster.
func CheckService(people *review.People, service string) error {
	switch {
	case service == "":
		return errors.New("the Kubernetes hook needs a service: name one that people.yaml declares")
	case !people.IsService(service):
		return fmt.Errorf("the Kubernetes hook's service %q is not a service declared in people.yaml", service)
	}
	return nil
}

// New makes a handler. The service has to be declared in people.yaml.
func New(desk *review.Desk, cfg Config) (*Handler, error) {
	if desk == nil {
		return nil, errors.New("the Kubernetes hook needs a desk")
	}
	if err := CheckService(desk.Setup().People, cfg.Service); err != nil {
		return nil, err
	}
	if cfg.Project == "" {
		cfg.Project = "default"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = 32
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Handler{desk: desk, cfg: cfg, slots: make(chan struct{}, cfg.InFlight)}, nil
}

// admissionReview is the envelope. Members that are not named here are the
// business of newer API servers.
type admissionReview struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Request    *admissionRequest `json:"request"`
}

// admissionAnswer is the envelope on its way back.
type admissionAnswer struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Response   *admissionResponse `json:"response,omitzero"`
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type admissionRequest struct {
	UID         string           `json:"uid"`
	Kind        groupVersionKind `json:"kind"`
	SubResource string           `json:"subResource"`
	Operation   string           `json:"operation"`
	UserInfo    struct {
		Username string `json:"username"`
	} `json:"userInfo"`
	Object    jsontext.Value `json:"object"`
	OldObject jsontext.Value `json:"oldObject"`
	DryRun    bool           `json:"dryRun"`
}

type admissionResponse struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *wireStatus       `json:"status,omitzero"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitzero"`
	Warnings         []string          `json:"warnings,omitzero"`
}

type wireStatus struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
}

// answer is what the gate says to one question. Its zero value is a refusal.
type answer struct {
	result    Result
	allowed   bool
	message   string
	screening string
	spec      screening.Digest256
	warnings  []string
	err       error // for the log
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	if r.Method != http.MethodPost || r.URL.Path != Path {
		http.Error(w, "weir: the API server asks with POST "+Path, http.StatusNotFound)
		return
	}
	limit, err := h.limit(r)
	if err != nil {
		http.Error(w, "weir: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		http.Error(w, "weir: too many questions at once; nothing was checked", http.StatusServiceUnavailable)
		return
	}
	// Refused without a deadline by a client that has no connection, and then nothing dribbles.
	_ = http.NewResponseController(w).SetReadDeadline(start.Add(limit))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
	if err != nil {
		http.Error(w, "weir: the AdmissionReview could not be read; nothing was checked", http.StatusBadRequest)
		return
	}
	var in admissionReview
	if err := json.Unmarshal(body, &in); err != nil || in.Kind != reviewKind || in.Request == nil || in.Request.UID == "" {
		http.Error(w, "weir: this is no AdmissionReview with a request; nothing was checked", http.StatusBadRequest)
		return
	}
	version := reviewVersion
	var a answer
	switch in.APIVersion {
	case reviewVersion:
		a = h.answerSafely(ctx, in.Request)
	case reviewVersionBefore: // answered in kind, so that the message arrives
		version = in.APIVersion
		a = invalid("this gate speaks " + reviewVersion + " only; set admissionReviewVersions: [v1] in the ValidatingWebhookConfiguration")
	default:
		http.Error(w, "weir: this gate speaks "+reviewVersion+" only; nothing was checked", http.StatusBadRequest)
		return
	}
	out, err := json.Marshal(admissionAnswer{APIVersion: version, Kind: reviewKind, Response: a.response(in.Request.UID)}, json.Deterministic(true))
	if err != nil {
		http.Error(w, "weir: internal error; nothing was checked", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// An answer that does not arrive is a refusal to the API server.
	_, _ = w.Write(out)
	h.report(ctx, in.Request, a, time.Since(start))
}

// limit is how long this answer may take: what the API server waits, less what
// the way back needs.
func (h *Handler) limit(r *http.Request) (time.Duration, error) {
	limit := h.cfg.Timeout
	if text := r.URL.Query().Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, errors.New("the timeout of the query is not a duration")
		}
		limit = min(d, 30*time.Second)
	}
	return limit - min(limit/5, time.Second), nil
}

// answerSafely turns a panic into a refusal.
func (h *Handler) answerSafely(ctx context.Context, req *admissionRequest) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			h.cfg.Log.ErrorContext(ctx, "kubernetes hook", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			a = unavailable()
		}
	}()
	return h.answer(ctx, req)
}

func (h *Handler) answer(ctx context.Context, req *admissionRequest) answer {
	k, ok := kindOf(req.Kind.Group, req.Kind.Version, req.Kind.Kind)
	switch {
	case !ok:
		return invalid("this gate reads " + kindNames() + "; name only these in the rules of the ValidatingWebhookConfiguration")
	case req.SubResource == "status":
		return answer{allowed: true, result: Passed}
	case req.SubResource != "" || req.Operation != "CREATE" && req.Operation != "UPDATE":
		return invalid("this gate is asked about CREATE and UPDATE of whole objects; correct the rules of the ValidatingWebhookConfiguration")
	}
	now, err := readObject(k, req.Object)
	if err != nil {
		return invalid("the object cannot be read, or is not what the request says it is")
	}
	var before *object
	if req.Operation == "UPDATE" {
		if before, err = readObject(k, req.OldObject); err != nil {
			return invalid("the old object cannot be read, or is not what the request says it is")
		}
	}
	if ask, refused := h.asksAbout(req.UserInfo.Username, before, now); refused != nil {
		return *refused
	} else if !ask {
		return answer{allowed: true, result: Passed}
	}
	raw, err := specOf(now)
	if err != nil {
		return refuse(err)
	}
	if err := h.checkUser(req.UserInfo.Username, raw); err != nil && changed(before, now) {
		return refuse(err)
	}
	a := h.decide(ctx, raw, req.DryRun)
	a.warnings = warnings(now)
	return a
}

// asksAbout reports whether an object, or a change of one, is something to ask the gate about.
func (h *Handler) asksAbout(user string, before, now *object) (ask bool, refused *answer) {
	if now.kind.byLabel && now.gate != "true" {
		if before != nil && before.gate == "true" {
			a := invalid("the label " + GateLabel + " cannot be taken from a Job; delete it and create another")
			return false, &a
		}
		return false, nil
	}
	if !changed(before, now) && (!before.suspended || now.suspended) {
		return false, nil
	}
	if slices.Contains(h.cfg.Controllers, user) && slices.ContainsFunc(now.owners, isGatedKind) {
		return false, nil
	}
	return true, nil
}

// changed reports whether what trains, or what is said about it, differs. A
// created object differs from nothing.
func changed(before, now *object) bool {
	return before == nil || string(before.workload) != string(now.workload) || before.spec != now.spec || before.team != now.team ||
		before.kind.byLabel && before.gate != now.gate
}

// isGatedKind tells the owner's kind from one that nobody asked about; a Job may have none.
func isGatedKind(owner string) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return !k.byLabel && k.group+"/"+k.version+" "+k.name == owner })
}

// checkUser holds a person whom people.yaml knows by their user name in the
// cluster to their own name: nobody submits for another and then reviews the run.
func (h *Handler) checkUser(user string, raw []byte) error {
	people := h.desk.Setup().People
	person, known := people.Person(review.TokenSubject(review.ClusterUsers, user))
	if !known {
		return nil // a controller or pipeline, or a cluster whose users are not declared
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return err
	}
	if behalf, ok := people.Person(spec.OnBehalfOf); ok && behalf != person {
		return refusal("on_behalf_of of the training spec has to name you, as people.yaml has you for this cluster")
	}
	return nil
}

// decide asks the desk. Nothing but an open gate allows.
func (h *Handler) decide(ctx context.Context, raw []byte, dryRun bool) answer {
	p := review.Principal{Subject: h.cfg.Service, Project: h.cfg.Project, Scopes: []review.Scope{review.ScopeSubmit}}
	if dryRun {
		return h.preview(ctx, p, raw)
	}
	s, _, err := h.desk.Submit(ctx, p, raw, nil)
	if err != nil {
		return refuse(err)
	}
	gate, err := h.desk.AnswerTo(ctx, p, s, screening.Sum(raw))
	if err != nil {
		return refuse(err)
	}
	return h.gateAnswer(gate)
}

// preview says what a create would be told, and keeps nothing.
func (h *Handler) preview(ctx context.Context, p review.Principal, raw []byte) answer {
	sum := screening.Sum(raw)
	kept, err := h.desk.Check(ctx, p, sum)
	if err == nil && kept.Open() && kept.Screening.DecidedBy == review.ByPeople {
		return h.gateAnswer(kept)
	} else if err != nil && !errors.Is(err, review.ErrNotFound) {
		return refuse(err)
	}
	d, recall, err := h.desk.Preview(ctx, p, raw)
	if err != nil {
		return refuse(err)
	}
	if recall != nil {
		return answer{spec: d.SpecSHA256, result: Blocked, message: "would be blocked" + recalled(recall)}
	}
	return h.previewAnswer(d)
}

func (h *Handler) report(ctx context.Context, req *admissionRequest, a answer, took time.Duration) {
	known := "unknown"
	if k, ok := kindOf(req.Kind.Group, req.Kind.Version, req.Kind.Kind); ok {
		known = k.name
	}
	if h.cfg.Answered != nil {
		h.cfg.Answered(Answered{Kind: known, Result: a.result, Took: took, Allowed: a.allowed})
	}
	level := slog.LevelInfo
	if a.result == Unavailable {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("kind", known), slog.String("operation", req.Operation),
		slog.Bool("dry_run", req.DryRun), slog.String("result", string(a.result)), slog.Bool("allowed", a.allowed),
		slog.String("screening", a.screening), slog.Duration("took", took), slog.String("uid", req.UID)}
	if a.err != nil {
		attrs = append(attrs, slog.String("error", a.err.Error()))
	}
	h.cfg.Log.LogAttrs(context.WithoutCancel(ctx), level, "kubernetes hook", attrs...)
}
