// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

var everything = []v1alpha1.NotifierEvent{
	v1alpha1.EventPostPosted, v1alpha1.EventPostFailed, v1alpha1.EventPostNeedsAttention,
	v1alpha1.EventConnectionBroken, v1alpha1.EventConnectionExpiring, v1alpha1.EventMediaRejected,
}

// notifier creates a Notifier for all events.
func (t *team) notifier(ctx context.Context, name string, to *server, edits ...func(*v1alpha1.NotifierSpec)) *v1alpha1.Notifier {
	GinkgoHelper()
	n := &v1alpha1.Notifier{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       v1alpha1.NotifierSpec{URL: to.URL, SecretRef: &v1alpha1.LocalReference{Name: "signing"}, Events: everything},
	}
	for _, edit := range edits {
		edit(&n.Spec)
	}
	Expect(k8s.Create(ctx, n)).To(Succeed())
	// No event may precede the Notifier's creation. Creation times, like those of conditions, are in whole seconds.
	if t.clock.Now().Before(n.CreationTimestamp.Time) {
		t.clock.SetTime(n.CreationTimestamp.Time)
	}
	return n
}

func (t *team) create(ctx context.Context, name string) *v1alpha1.Post {
	GinkgoHelper()
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{
			ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "hello",
		}}},
	}
	Expect(k8s.Create(ctx, p)).To(Succeed())
	return p
}

// post creates a post that has just finished in this phase.
func (t *team) post(ctx context.Context, name string, phase v1alpha1.PostPhase) *v1alpha1.Post {
	GinkgoHelper()
	p := t.create(ctx, name)
	t.finish(ctx, p, phase)
	return p
}

func (t *team) finish(ctx context.Context, p *v1alpha1.Post, phase v1alpha1.PostPhase) {
	GinkgoHelper()
	now := t.clock.Now()
	p.Status = v1alpha1.PostStatus{
		Phase: phase, Finished: true, FinishedAt: v1alpha1.NewTimePtr(now), FinishedOn: now.UTC().Format(time.DateOnly), ObservedGeneration: p.Generation,
	}
	Expect(k8s.Status().Update(ctx, p)).To(Succeed())
}

// undecided creates a post whose outcome has just become unknown.
func (t *team) undecided(ctx context.Context, name string) *v1alpha1.Post {
	GinkgoHelper()
	p := t.create(ctx, name)
	p.Status = v1alpha1.PostStatus{
		Phase: v1alpha1.PhaseProcessing, ObservedGeneration: p.Generation, Conditions: []metav1.Condition{t.condition(v1alpha1.ConditionOutcomeUnknown, v1alpha1.ReasonOutcomeUnknown)},
	}
	Expect(k8s.Status().Update(ctx, p)).To(Succeed())
	return p
}

// condition returns a condition that has just become True.
func (t *team) condition(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(t.clock.Now())}
}

// broken creates an account that has just been revoked.
func (t *team) broken(ctx context.Context, name string) {
	GinkgoHelper()
	c := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "1", CredentialsSecretRef: v1alpha1.LocalReference{Name: "a"}},
	}
	Expect(k8s.Create(ctx, c)).To(Succeed())
	c.Status.Conditions = []metav1.Condition{t.condition(v1alpha1.ConditionStalled, v1alpha1.ReasonRevoked)}
	Expect(k8s.Status().Update(ctx, c)).To(Succeed())
}

// rejected creates a file that has just been rejected.
func (t *team) rejected(ctx context.Context, name string) {
	GinkgoHelper()
	m := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: "cat.png", MimeType: v1alpha1.MimePNG, SizeBytes: 1},
	}
	Expect(k8s.Create(ctx, m)).To(Succeed())
	m.Status.Phase = v1alpha1.MediaRejected
	m.Status.Conditions = []metav1.Condition{t.condition(v1alpha1.ConditionStalled, v1alpha1.ReasonWrongType)}
	Expect(k8s.Status().Update(ctx, m)).To(Succeed())
}

// signing returns a Notifier's Secret.
func (t *team) signing(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}, StringData: map[string]string{v1alpha1.NotifierSecretKey: value},
	}
}

func (t *team) edit(ctx context.Context, name string, change func(*v1alpha1.Notifier)) {
	GinkgoHelper()
	Eventually(func() error {
		n := t.stored(ctx, name)
		change(n)
		return k8s.Update(ctx, n)
	}).Should(Succeed())
}

func (t *team) stored(ctx context.Context, name string) *v1alpha1.Notifier {
	GinkgoHelper()
	var n v1alpha1.Notifier
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &n)).To(Succeed())
	return &n
}

// state returns a Notifier's state as "True Delivering pending=1 failing=message".
func (t *team) state(ctx context.Context, name string) func() any {
	return func() any {
		n := t.stored(ctx, name)
		ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return ""
		}
		out := fmt.Sprintf("%s %s pending=%d", ready.Status, ready.Reason, n.Status.Pending)
		if failing := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionFailing); failing != nil {
			out += " failing=" + failing.Message
		}
		return out
	}
}

// mailbox receives emails as "to [recipients]: subject".
type mailbox chan string

func (m mailbox) Send(_ context.Context, _ string, to []string, subject, _ string) error {
	m <- fmt.Sprintf("to %v: %s", to, subject)
	return nil
}
