package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var now = time.Date(2026, 11, 5, 8, 15, 0, 0, time.UTC)

// recorded is an answer that weir's own tests recorded, to a question with this uid.
func recorded(t testing.TB, name string, uid types.UID) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../cmd/weir/kubernetes/testdata/answers", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(data, &review); err != nil {
		t.Fatal(err)
	}
	review.Response.UID = uid
	data, err = json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answering is a gate that gives one recorded answer, or an error.
type answering struct {
	t     testing.TB
	name  string
	err   error
	asked int
}

func (a *answering) ask(_ context.Context, o *unstructured.Unstructured, resource string) (verdict, error) {
	a.asked++
	if o.GetName() == "" || resource == "" {
		a.t.Errorf("asked about %q %q", o.GetName(), resource)
	}
	if a.err != nil {
		return verdict{}, a.err
	}
	const uid = "f1b0"
	return readVerdict(recorded(a.t, a.name, uid), &admissionv1.AdmissionRequest{UID: uid})
}

func job() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("trainer.kubeflow.org/v1alpha1")
	o.SetKind("TrainJob")
	o.SetNamespace("nlp")
	o.SetName("help-desk")
	o.SetUID("owner")
	return o
}

func workload(change ...func(*kueue.Workload)) *kueue.Workload {
	yes := true
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "nlp", Name: "trainjob-help-desk",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "help-desk", UID: "owner", Controller: &yes}}}}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved"}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "other", State: kueue.CheckStatePending}, {Name: "weir", State: kueue.CheckStatePending}}
	for _, c := range change {
		c(w)
	}
	return w
}

func check(name, controller string) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.AdmissionCheckSpec{ControllerName: controller}}
}

func newClient(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&kueue.Workload{}, &kueue.AdmissionCheck{}).
		WithInterceptorFuncs(funcs).Build()
}

// states reconciles once and gives the states of both checks.
func reconcile(t testing.TB, c client.WithWatch, gate asker) (ours, other kueue.AdmissionCheckState, result ctrl.Result, err error) {
	t.Helper()
	w := &workloads{client: c, reader: c, gate: gate, now: func() time.Time { return now }, retry: 5 * time.Minute, again: 30 * time.Second}
	key := types.NamespacedName{Namespace: "nlp", Name: "trainjob-help-desk"}
	result, err = w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	var got kueue.Workload
	if err := c.Get(t.Context(), key, &got); err != nil {
		t.Fatal(err)
	}
	return got.Status.AdmissionChecks[1], got.Status.AdmissionChecks[0], result, err
}

// Every answer of the gate leads to one state, and only an admission to Ready.
func TestStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gate    answering
		state   kueue.CheckState
		requeue int32
		message string
	}{
		"admitted":    {answering{name: "admitted"}, kueue.CheckStateReady, 0, "weir: admitted"},
		"blocked":     {answering{name: "blocked"}, kueue.CheckStateRejected, 0, "weir: blocked: safety:sexualised_minors"},
		"pending":     {answering{name: "pending"}, kueue.CheckStateRetry, 300, "weir: people have to decide first"},
		"invalid":     {answering{name: "invalid"}, kueue.CheckStateRejected, 0, "weir: the training spec"},
		"unavailable": {answering{name: "unavailable"}, kueue.CheckStateRetry, 30, "weir: no answer"},
		"not asked":   {answering{name: "passed"}, kueue.CheckStateRetry, 30, "weir: no answer"},
		"no answer":   {answering{err: errors.New("connection refused: password=hunter2")}, kueue.CheckStateRetry, 30, "weir: no answer"},
	} {
		gate := c.gate
		gate.t = t
		ours, other, _, err := reconcile(t, newClient(t, interceptor.Funcs{}, job(), workload(), check("weir", controllerName), check("other", "example.com/other")), &gate)
		if err != nil || ours.State != c.state || !strings.HasPrefix(ours.Message, c.message) || strings.Contains(ours.Message, "hunter2") || !ours.LastTransitionTime.Time.Equal(now) {
			t.Errorf("%s: %+v, %v", name, ours, err)
		}
		if got := ours.RequeueAfterSeconds; c.requeue == 0 && got != nil || c.requeue != 0 && (got == nil || *got != c.requeue) {
			t.Errorf("%s: requeue after %v", name, got)
		}
		if other.State != kueue.CheckStatePending || gate.asked != 1 {
			t.Errorf("%s: the other check is %s, asked %d times", name, other.State, gate.asked)
		}
	}
}

// A state is answered once; it is Kueue that makes it pending again.
func TestNotAsked(t *testing.T) {
	t.Parallel()
	set := func(state kueue.CheckState) func(*kueue.Workload) {
		return func(w *kueue.Workload) { w.Status.AdmissionChecks[1].State = state }
	}
	for name, change := range map[string]func(*kueue.Workload){
		"without quota": func(w *kueue.Workload) { w.Status.Conditions = nil },
		"quota lost":    func(w *kueue.Workload) { w.Status.Conditions[0].Status = metav1.ConditionFalse },
		"finished": func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		},
		"ready":    set(kueue.CheckStateReady),
		"rejected": set(kueue.CheckStateRejected),
		"retry":    set(kueue.CheckStateRetry),
	} {
		gate := answering{t: t, name: "admitted"}
		want := workload(change).Status.AdmissionChecks[1].State
		ours, _, _, err := reconcile(t, newClient(t, interceptor.Funcs{}, job(), workload(change), check("weir", controllerName), check("other", "x")), &gate)
		if err != nil || gate.asked != 0 || ours.State != want {
			t.Errorf("%s: %+v, asked %d times, %v", name, ours, gate.asked, err)
		}
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*kueue.Workload)
		state   kueue.CheckState
		message string
	}{
		"none":        {func(w *kueue.Workload) { w.OwnerReferences = nil }, kueue.CheckStateRejected, "belongs to no job"},
		"a pod":       {func(w *kueue.Workload) { w.OwnerReferences[0].APIVersion, w.OwnerReferences[0].Kind = "v1", "Pod" }, kueue.CheckStateRejected, "cannot be screened"},
		"gone":        {func(w *kueue.Workload) { w.OwnerReferences[0].Name = "gone" }, kueue.CheckStateRetry, "nothing is known"},
		"another one": {func(w *kueue.Workload) { w.OwnerReferences[0].UID = "other" }, kueue.CheckStateRetry, "nothing is known"},
	} {
		gate := answering{t: t, name: "admitted"}
		ours, _, _, err := reconcile(t, newClient(t, interceptor.Funcs{}, job(), workload(c.change), check("weir", controllerName), check("other", "x")), &gate)
		if err != nil || gate.asked != 0 || ours.State != c.state || !strings.Contains(ours.Message, c.message) {
			t.Errorf("%s: %+v, asked %d times, %v", name, ours, gate.asked, err)
		}
	}
}

// An API server that fails leaves the check as it is; a verdict is never written
// onto a workload that changed while the gate was asked.
func TestFaults(t *testing.T) {
	t.Parallel()
	broken := errors.New("etcdserver: request timed out")
	for name, funcs := range map[string]interceptor.Funcs{
		"no check": {Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*kueue.AdmissionCheck); ok {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		}},
		"no patch": {SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return broken
		}},
	} {
		ours, _, _, err := reconcile(t, newClient(t, funcs, job(), workload(), check("weir", controllerName), check("other", "x")), &answering{t: t, name: "admitted"})
		if err == nil || ours.State != kueue.CheckStatePending {
			t.Errorf("%s: %+v, %v", name, ours, err)
		}
	}
	c := newClient(t, interceptor.Funcs{}, job(), workload(), check("weir", controllerName), check("other", "x"))
	ours, _, result, err := reconcile(t, c, &changing{answering{t: t, name: "admitted"}, c})
	if err != nil || ours.State != kueue.CheckStateRejected || result.RequeueAfter == 0 {
		t.Errorf("rejected by somebody else meanwhile: %+v, %v, %v", ours, result, err)
	}
}

// changing is a gate that takes so long that somebody else rejects the workload.
type changing struct {
	answering
	client client.Client
}

func (g *changing) ask(ctx context.Context, o *unstructured.Unstructured, resource string) (verdict, error) {
	var w kueue.Workload
	if err := g.client.Get(ctx, client.ObjectKey{Namespace: "nlp", Name: "trainjob-help-desk"}, &w); err != nil {
		return verdict{}, err
	}
	w.Status.AdmissionChecks[1].State = kueue.CheckStateRejected
	if err := g.client.Status().Update(ctx, &w); err != nil {
		return verdict{}, err
	}
	return g.answering.ask(ctx, o, resource)
}

func TestChecksAreActive(t *testing.T) {
	t.Parallel()
	with := check("weir", controllerName)
	with.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: "x.example", Kind: "X", Name: "x"}
	for name, c := range map[string]struct {
		check *kueue.AdmissionCheck
		want  metav1.ConditionStatus
	}{"ours": {check("weir", controllerName), metav1.ConditionTrue}, "another's": {check("weir", "example.com/other"), ""}, "with parameters": {with, metav1.ConditionFalse}} {
		k := newClient(t, interceptor.Funcs{}, c.check)
		r := &checks{client: k, now: func() time.Time { return now }}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "weir"}}); err != nil {
				t.Fatal(err)
			}
		}
		var got kueue.AdmissionCheck
		if err := k.Get(t.Context(), client.ObjectKey{Name: "weir"}, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Status.Conditions) == 0 && c.want != "" || len(got.Status.Conditions) > 0 && got.Status.Conditions[0].Status != c.want {
			t.Errorf("%s: %+v", name, got.Status.Conditions)
		}
	}
}
