package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Reconciler brings the children of a Monocle into being: Elasticsearch, then the API once that is ready, then the
// crawler once the API is.
type Reconciler struct {
	client.Client
}

func (r *Reconciler) setup(manager ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(manager).
		// Its own status writes do not queue a Monocle again.
		For(&Monocle{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Secret{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	monocle := &Monocle{}
	if err := r.Get(ctx, request.NamespacedName, monocle); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !monocle.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	state, err := r.children(ctx, monocle)
	if err != nil {
		// A stale cache: the event that is on its way queues it again.
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			return ctrl.Result{Requeue: true}, nil
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, monocle, state)
}

// progress is how far the components are.
type progress struct{ elastic, api, crawler bool }

func (r *Reconciler) children(ctx context.Context, m *Monocle) (progress, error) {
	var state progress
	secret := &corev1.Secret{}
	if err := r.once(ctx, m, secret, func() client.Object { return apiSecret(m) }); err != nil {
		return state, err
	}
	if err := r.once(ctx, m, &corev1.ConfigMap{}, func() client.Object { return apiConfig(m) }); err != nil {
		return state, err
	}
	for _, wanted := range []*corev1.Service{service(m, "elastic", 9200), service(m, "api", 8080)} {
		found := &corev1.Service{}
		same := func() bool { return equality.Semantic.DeepDerivative(wanted.Spec, found.Spec) }
		if err := r.ensure(ctx, m, wanted, found, same, func() { found.Spec.Selector, found.Spec.Ports = wanted.Spec.Selector, wanted.Spec.Ports }); err != nil {
			return state, err
		}
	}
	set, foundSet := elastic(m), &appsv1.StatefulSet{}
	same := func() bool { return equality.Semantic.DeepDerivative(set.Spec, foundSet.Spec) }
	if err := r.ensure(ctx, m, set, foundSet, same, func() { foundSet.Spec.Template = set.Spec.Template }); err != nil {
		return state, err
	}
	if state.elastic = foundSet.Status.ReadyReplicas > 0; !state.elastic {
		return state, nil
	}
	tokens := contentHash(secret.Data)
	for _, step := range []struct {
		wanted *appsv1.Deployment
		ready  *bool
	}{{api(m, tokens), &state.api}, {crawler(m, tokens), &state.crawler}} {
		found := &appsv1.Deployment{}
		same := func() bool { return equality.Semantic.DeepDerivative(step.wanted.Spec, found.Spec) }
		if err := r.ensure(ctx, m, step.wanted, found, same, func() { found.Spec = step.wanted.Spec }); err != nil {
			return state, err
		}
		if *step.ready = available(found); !*step.ready {
			return state, nil
		}
	}
	return state, nil
}

// once creates an object that is the user's from then on; found is what there is afterwards.
func (r *Reconciler) once(ctx context.Context, m *Monocle, found client.Object, build func() client.Object) error {
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Name + "-api"}
	err := r.Get(ctx, key, found)
	if !apierrors.IsNotFound(err) {
		return err
	}
	wanted := build()
	if err := controllerutil.SetControllerReference(m, wanted, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, wanted); err != nil {
		return err
	}
	switch found := found.(type) {
	case *corev1.Secret:
		*found = *wanted.(*corev1.Secret)
	case *corev1.ConfigMap:
		*found = *wanted.(*corev1.ConfigMap)
	}
	return nil
}

// ensure creates an object, or updates it where what is wanted is not in it; found is what there is afterwards.
func (r *Reconciler) ensure(ctx context.Context, m *Monocle, wanted, found client.Object, same func() bool, update func()) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		if err := controllerutil.SetControllerReference(m, wanted, r.Scheme()); err != nil {
			return err
		}
		return r.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if same() && equality.Semantic.DeepDerivative(wanted.GetLabels(), found.GetLabels()) && metav1.IsControlledBy(found, m) {
		return nil
	}
	update()
	all := found.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	for label, value := range wanted.GetLabels() {
		all[label] = value
	}
	found.SetLabels(all)
	if err := controllerutil.SetControllerReference(m, found, r.Scheme()); err != nil {
		return err
	}
	return r.Update(ctx, found)
}

func available(deployment *appsv1.Deployment) bool {
	status := deployment.Status
	return status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas > 0 &&
		status.AvailableReplicas == status.Replicas && status.AvailableReplicas > 0
}

// report writes the status when the Monocle is new or changed, and when it has become ready or is so no more. The
// steps between are to be seen at the children.
func (r *Reconciler) report(ctx context.Context, m *Monocle, state progress) error {
	status := *m.Status.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.URL = publicURL(m)
	status.Elastic, status.API, status.Crawler = line(state.elastic), line(state.api), line(state.crawler)
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: m.Generation}
	if state.elastic && state.api && state.crawler {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Ready"
	}
	changed := apimeta.SetStatusCondition(&status.Conditions, ready)
	if !changed && m.Status.ObservedGeneration == m.Generation {
		return nil
	}
	// A patch without a resourceVersion: the cache may not have seen the last one yet.
	before := m.DeepCopyObject().(*Monocle)
	m.Status = status
	return r.Status().Patch(ctx, m, client.MergeFrom(before))
}

func line(ready bool) string {
	if ready {
		return "Ready"
	}
	return "Waiting"
}
