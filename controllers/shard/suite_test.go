// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/admission"
	"github.com/herald-social/herald/controllers/shard"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/suite"
)

func TestShardController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Shard controller")
}

const shards = 4

var (
	k8s    client.Client
	serial atomic.Int64
)

var _ = BeforeSuite(func() {
	env := suite.Start()
	k8s = env.Client
	config := rest.CopyConfig(env.Config)
	config.Wrap(kubeclient.WrapTransport)
	mgr := suite.Must(ctrl.NewManager(config, ctrl.Options{Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}}))
	teams := suite.Must(quota.NewTeams(context.Background(), mgr.GetCache(), mgr.GetFieldIndexer()))
	tally := suite.Must(admission.NewTally(context.Background(), mgr.GetCache()))
	r := suite.Must(shard.New(shard.Options{
		Client: rejecting{mgr.GetClient()}, APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Shards: shards, Owner: teams.Owner,
		Unfinished: tally.Unfinished, SuspensionRetention: time.Hour,
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
})

// rejected is the annotation of posts whose updates a webhook rejects.
const rejected = "test.example.com/rejected"

// rejecting is a client whose patches pass such a webhook.
type rejecting struct{ client.Client }

func (c rejecting) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, is := obj.GetAnnotations()[rejected]; is {
		return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "posts"}, obj.GetName(), errors.New("denied by a webhook"))
	}
	return c.Client.Patch(ctx, obj, patch, options...)
}

// unstored creates a namespace, and returns a team for it that is not stored.
func unstored(ctx context.Context) *v1alpha1.Team {
	GinkgoHelper()
	name := fmt.Sprintf("team-%d", serial.Add(1))
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TeamSpec{Namespace: name}}
}

// newTeam creates a team and its namespace.
func newTeam(ctx context.Context) *v1alpha1.Team {
	GinkgoHelper()
	team := unstored(ctx)
	Expect(k8s.Create(ctx, team)).To(Succeed())
	DeferCleanup(func(cleanup SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(cleanup, team))).To(Succeed()) }) //nolint:contextcheck // the spec's context has ended by then
	return team
}

// read returns the current team.
func read(ctx context.Context, team *v1alpha1.Team) *v1alpha1.Team {
	GinkgoHelper()
	var now v1alpha1.Team
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(team), &now)).To(Succeed())
	return &now
}

// shardOf returns a team's shard, unless the team is being moved.
func shardOf(ctx context.Context, team *v1alpha1.Team) func() string {
	return func() string {
		if now := read(ctx, team); !now.Moving() {
			return now.Status.Shard
		}
		return ""
	}
}

// newPost creates a scheduled post, with a label if it is not empty. Posts are listed, and thus labelled, in the order of
// their creation.
func newPost(ctx context.Context, team *v1alpha1.Team, label string) *v1alpha1.Post {
	GinkgoHelper()
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%04d", serial.Add(1)), Namespace: team.Spec.Namespace},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(time.Now().Add(time.Hour)),
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
		},
	}
	if label != "" {
		post.Labels = map[string]string{v1alpha1.ShardLabel: label}
	}
	Expect(k8s.Create(ctx, post)).To(Succeed())
	return post
}

// labelOf returns a post's shard.
func labelOf(ctx context.Context, post *v1alpha1.Post) func() string {
	return func() string {
		var now v1alpha1.Post
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), &now)).To(Succeed())
		return now.Labels[v1alpha1.ShardLabel]
	}
}

// connect creates a connection to an account, which the platform has confirmed.
func connect(ctx context.Context, team *v1alpha1.Team, account string) {
	GinkgoHelper()
	conn := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: team.Spec.Namespace},
		Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: account, CredentialsSecretRef: v1alpha1.LocalReference{Name: "x"}},
	}
	Expect(k8s.Create(ctx, conn)).To(Succeed())
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(conn), conn); err != nil {
			return err
		}
		conn.Status.ConnectedAt = v1alpha1.NewTimePtr(time.Now())
		return k8s.Status().Update(ctx, conn)
	})).To(Succeed())
}
