// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
)

// team is a team for one test.
type team struct {
	namespace string
	resource  *v1alpha1.Team
	key       *v1alpha1.APIKey
	token     string
}

// newTeam creates an active team with a working API key.
func newTeam(ctx context.Context, edits ...func(*v1alpha1.Team)) *team {
	GinkgoHelper()
	t := &team{namespace: "team-" + strings.ToLower(rand.Text()[:8])}
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: t.namespace, Labels: map[string]string{v1alpha1.TeamLabel: t.namespace},
	}})).To(Succeed())
	t.resource = &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: t.namespace},
		Spec:       v1alpha1.TeamSpec{Namespace: t.namespace, Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}},
	}
	for _, edit := range edits {
		edit(t.resource)
	}
	Expect(admin.Create(ctx, t.resource)).To(Succeed())
	t.key, t.token = t.newKey(ctx, "default", func(*v1alpha1.APIKey) {})
	Eventually(func() int { return t.call(ctx, "GET", "/posts", "").status }).Should(Equal(200))
	// A body is validated only once the server's cache has the team.
	Eventually(func() int { return t.call(ctx, "POST", "/posts", "{}").status }).Should(Equal(400))
	return t
}

// newKey creates an API key and returns it with its token.
func (t *team) newKey(ctx context.Context, name string, edit func(*v1alpha1.APIKey)) (key *v1alpha1.APIKey, token string) {
	GinkgoHelper()
	token = apitoken.New(t.namespace, name)
	key = &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec:       v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "first", SHA256: apitoken.Hash(t.namespace, name, token)}}},
	}
	edit(key)
	Expect(admin.Create(ctx, key)).To(Succeed())
	return key, token
}

// connect creates a connection. Its name determines what playManager's checks of it return.
func (t *team) connect(ctx context.Context, name string, platform v1alpha1.Platform, edits ...func(*v1alpha1.Connection)) *v1alpha1.Connection {
	GinkgoHelper()
	connection := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name},
		Spec: v1alpha1.ConnectionSpec{
			Platform: platform, AccountID: "account-of-" + name,
			CredentialsSecretRef: v1alpha1.LocalReference{Name: name},
		},
	}
	for _, edit := range edits {
		edit(connection)
	}
	Expect(admin.Create(ctx, connection)).To(Succeed())
	return connection
}

// answers are the results of connection checks, by name prefix. Other connections are ready.
var answers = map[string]metav1.Condition{
	"expired":     {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTokenExpired, Message: "the token has ended"},
	"revoked":     {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRevoked, Message: "access was withdrawn"},
	"nosecret":    {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialsNotFound, Message: "there is no such Secret"},
	"badsecret":   {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialsInvalid, Message: "the Secret has no accessToken"},
	"mismatch":    {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAccountMismatch, Message: "the token belongs to another account"},
	"down":        {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPlatformUnavailable, Message: "the platform answers 503"},
	"unreachable": {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialsUnavailable, Message: "the Secret cannot be read"},
	"undecided":   {Status: metav1.ConditionUnknown, Reason: "Probing", Message: "not known yet"},
}

// playManager responds to requests for connection checks, except for connections named "silent…", until the context is
// done.
func playManager(ctx context.Context) {
	defer GinkgoRecover()
	connections, err := admin.Watch(ctx, &v1alpha1.ConnectionList{})
	if ctx.Err() != nil { // the suite ended immediately
		return
	}
	Expect(err).NotTo(HaveOccurred())
	defer connections.Stop()
	for event := range connections.ResultChan() {
		connection, ok := event.Object.(*v1alpha1.Connection)
		if !ok || event.Type == watch.Deleted || strings.HasPrefix(connection.Name, "silent") {
			continue
		}
		if token := connection.Annotations[v1alpha1.ProbeAnnotation]; token != connection.Status.LastHandledProbe {
			if err := answer(ctx, connection, token); err != nil && ctx.Err() == nil {
				GinkgoWriter.Println("cannot answer a check:", err)
			}
		}
	}
}

// answer writes a check's result, as the manager does. In a race with the next request, the last write wins.
func answer(ctx context.Context, connection *v1alpha1.Connection, token string) error {
	condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}
	for prefix, found := range answers {
		if strings.HasPrefix(connection.Name, prefix) {
			condition = found
		}
	}
	condition.Type = v1alpha1.ConditionReady
	condition.ObservedGeneration = connection.Generation
	before := connection.DeepCopy()
	meta.SetStatusCondition(&connection.Status.Conditions, condition)
	connection.Status.ObservedGeneration = connection.Generation
	connection.Status.LastHandledProbe = token
	connection.Status.LastProbedAt = v1alpha1.NewTimePtr(time.Now())
	connection.Status.AccountName = "Account of " + connection.Name
	return admin.Status().Patch(ctx, connection, client.MergeFrom(before))
}

// stored reads a post from the Kubernetes API.
func (t *team) stored(ctx context.Context, id string) *v1alpha1.Post {
	GinkgoHelper()
	post := &v1alpha1.Post{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: id}, post)).To(Succeed())
	return post
}

// setStatus writes a post's status as the manager does, with optimistic concurrency.
func setStatus(ctx context.Context, post *v1alpha1.Post, edit func(*v1alpha1.PostStatus)) error {
	edit(&post.Status)
	return admin.Status().Update(ctx, post)
}

// claimed returns a target whose delivery has started.
func claimed(index int32, now time.Time) v1alpha1.TargetStatus {
	return v1alpha1.TargetStatus{
		Index: index, Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing,
		Attempt: &v1alpha1.Attempt{
			Number: 1, ID: rand.Text(), StartedAt: v1alpha1.NewTime(now), SendBefore: v1alpha1.NewTime(now.Add(time.Minute)),
		},
	}
}

// text returns the body of a request for a text post.
func text(connection, caption string, more ...string) string {
	return fmt.Sprintf(`{"category":"text","targets":[{"connection_id":%q,"caption":%q}]%s}`, connection, caption, strings.Join(more, ""))
}

// inAnHour returns the JSON that schedules a post.
func inAnHour() string {
	return fmt.Sprintf(`,"scheduled_at":%q`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano))
}

const draft = `,"draft":true`
