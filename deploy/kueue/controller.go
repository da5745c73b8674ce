package main

import (
	"context"
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// controllerName is what an AdmissionCheck has to name for this controller to care.
const controllerName = "weir.dev/gate"

// resources are the kinds that the gate reads, by group and kind.
var resources = map[string]string{
	batchv1.GroupName + "/Job":      "jobs",
	"jobset.x-k8s.io/JobSet":        "jobsets",
	"kubeflow.org/PyTorchJob":       "pytorchjobs",
	"ray.io/RayJob":                 "rayjobs",
	"trainer.kubeflow.org/TrainJob": "trainjobs",
}

// asker is what the controller needs of the gate.
type asker interface {
	ask(ctx context.Context, object *unstructured.Unstructured, resource string) (verdict, error)
}

// workloads answers the gate's check of workloads that have their quota.
type workloads struct {
	client client.Client
	reader client.Reader // past the cache: an owner is read once, not watched
	gate   asker
	now    func() time.Time
	retry  time.Duration // how long a workload waits that people have to decide about
	again  time.Duration // how long one waits when the gate did not answer
}

// Reconcile sets the state of every pending check that is ours: admitted is
// Ready, what people have to decide is Retry, and everything else is Rejected. A
// gate that does not answer is Retry too: it is no verdict, and holds no quota.
func (w *workloads) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var wl kueue.Workload
	if err := w.client.Get(ctx, req.NamespacedName, &wl); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !wl.DeletionTimestamp.IsZero() || meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) ||
		!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) {
		return ctrl.Result{}, nil // asked when it has its quota: a verdict is for a run that is about to start
	}
	before := wl.DeepCopy()
	var pending []*kueue.AdmissionCheckState
	for i := range wl.Status.AdmissionChecks {
		state := &wl.Status.AdmissionChecks[i]
		if state.State != kueue.CheckStatePending {
			continue
		}
		var check kueue.AdmissionCheck
		if err := w.client.Get(ctx, client.ObjectKey{Name: string(state.Name)}, &check); err != nil {
			return ctrl.Result{}, fmt.Errorf("admission check %s: %w", state.Name, err)
		}
		if check.Spec.ControllerName == controllerName {
			pending = append(pending, state)
		}
	}
	if len(pending) == 0 {
		return ctrl.Result{}, nil
	}
	v := w.verdictOn(ctx, &wl)
	for _, state := range pending {
		w.set(state, v)
	}
	// Of a workload that changed in between nothing is known; it is read again.
	err := w.client.Status().Patch(ctx, &wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// verdictOn asks the gate about the object that a workload stands for.
func (w *workloads) verdictOn(ctx context.Context, wl *kueue.Workload) verdict {
	owner := metav1.GetControllerOf(wl)
	if owner == nil {
		return verdict{"invalid", "weir: the workload belongs to no job whose training spec could be read"}
	}
	var object unstructured.Unstructured
	object.SetAPIVersion(owner.APIVersion)
	object.SetKind(owner.Kind)
	gvk := object.GroupVersionKind()
	resource, known := resources[gvk.Group+"/"+gvk.Kind]
	if !known {
		return verdict{"invalid", "weir: this kind of workload cannot be screened; take it out of the queue that asks for it"}
	}
	err := w.reader.Get(ctx, client.ObjectKey{Namespace: wl.Namespace, Name: owner.Name}, &object)
	if err == nil && object.GetUID() != owner.UID {
		err = fmt.Errorf("%s %s is not the one that the workload belongs to", owner.Kind, owner.Name)
	}
	if err == nil {
		var v verdict
		if v, err = w.gate.ask(ctx, &object, resource); err == nil {
			return v
		}
	}
	log.FromContext(ctx).Error(err, "the gate was not asked, or did not answer")
	return verdict{"unavailable", "weir: no answer: nothing is known about this run, so it may not start; it is asked again"}
}

// set writes a verdict into a check. What is not known is not Ready.
func (w *workloads) set(s *kueue.AdmissionCheckState, v verdict) {
	s.Message = v.message
	s.LastTransitionTime = metav1.NewTime(w.now())
	s.RequeueAfterSeconds = nil
	switch v.result {
	case "admitted":
		s.State = kueue.CheckStateReady
	case "pending":
		s.State, s.RequeueAfterSeconds = kueue.CheckStateRetry, seconds(w.retry)
	case "blocked", "closed", "invalid":
		s.State = kueue.CheckStateRejected
	default:
		s.State, s.RequeueAfterSeconds = kueue.CheckStateRetry, seconds(w.again)
	}
}

func seconds(d time.Duration) *int32 {
	s := int32(math.Ceil(d.Seconds()))
	return &s
}

// checks marks the AdmissionChecks that name this controller as active; Kueue
// admits nothing to a queue whose checks are not.
type checks struct {
	client client.Client
	now    func() time.Time
}

func (c *checks) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var check kueue.AdmissionCheck
	if err := c.client.Get(ctx, req.NamespacedName, &check); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if check.Spec.ControllerName != controllerName {
		return ctrl.Result{}, nil
	}
	active := metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active", Message: "weir is asked about these workloads",
		ObservedGeneration: check.Generation, LastTransitionTime: metav1.NewTime(c.now())}
	if check.Spec.Parameters != nil {
		active.Status, active.Reason, active.Message = metav1.ConditionFalse, "BadParameters", "this check takes no parameters; remove them"
	}
	before := check.DeepCopy()
	if !meta.SetStatusCondition(&check.Status.Conditions, active) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.client.Status().Patch(ctx, &check, client.MergeFrom(before)))
}
