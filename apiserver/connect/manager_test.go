// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/test/envtest"
)

// The manager processes the objects that the apiserver has written.
var _ = Describe("A connected account", func() {
	examine := func(ctx context.Context, d *desk, name string) *v1alpha1.Connection {
		GinkgoHelper()
		manager, err := connection.New(connection.Options{
			Client: env.Client, APIReader: env.Client, Clock: d.clock, Platforms: registry,
			Owned: envtest.EveryNamespace,
			Store: credentials.NewStore(env.Client, env.Client, d.clock, "the manager", nil),
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = manager.Reconcile(ctx, ctrl.Request{NamespacedName: objectKey(d.namespace, name)})
		Expect(err).NotTo(HaveOccurred())
		found := &v1alpha1.Connection{}
		Expect(env.Client.Get(ctx, objectKey(d.namespace, name), found)).To(Succeed())
		return found
	}

	DescribeTable("is probed successfully", func(ctx SpecContext, platform v1alpha1.Platform, ends bool) {
		d, account := newDesk(ctx), newAccount(ctx, platform)
		out := d.connect(ctx, visitor("ann"), platform, account)
		found := examine(ctx, d, out.Connection.Name)
		ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready).NotTo(BeNil())
		Expect(ready.Reason).To(Equal(v1alpha1.ReasonConnected), ready.Message)
		Expect(found.Status.TokenExpiresAt != nil).To(Equal(ends))
		Expect(found.Status.LastHandledProbe).To(Equal(found.Annotations[v1alpha1.ProbeAnnotation]))
	},
		Entry("on X", v1alpha1.PlatformX, true),
		Entry("on Threads", v1alpha1.PlatformThreads, true),
		Entry("on Instagram", v1alpha1.PlatformInstagram, true),
		Entry("on Facebook", v1alpha1.PlatformFacebook, false),
		Entry("on TikTok", v1alpha1.PlatformTikTok, true),
		Entry("on YouTube", v1alpha1.PlatformYouTube, true),
	)

	It("has one Secret next to the working copy and its register, however often it is reconnected", func(ctx SpecContext) {
		d, who, account := newDesk(ctx), visitor("ann"), newAccount(ctx, v1alpha1.PlatformX)
		first := d.connect(ctx, who, v1alpha1.PlatformX, account)
		examine(ctx, d, first.Connection.Name)
		for range 3 {
			d.connect(ctx, who, v1alpha1.PlatformX, account)
		}
		_, kept := d.all(ctx)
		Expect(kept).To(HaveLen(6))
		d.clock.Step(20 * time.Minute)
		d.connect(ctx, who, v1alpha1.PlatformX, account)
		examine(ctx, d, first.Connection.Name)
		found, secret := d.stored(ctx, first.Connection.Name)
		_, kept = d.all(ctx)
		Expect(names(kept)).To(ConsistOf(secret.Name, found.Status.WorkingSecret, credentials.RegisterName))
		Expect(kept).To(ContainElement(And(HaveField("Name", found.Status.WorkingSecret), HaveField("Data", HaveKeyWithValue("accessToken", secret.Data["accessToken"])))),
			"the copy follows")
		noted := 0
		for key := range found.Annotations {
			if strings.HasPrefix(key, v1alpha1.MadeSecretPrefix) {
				noted++
			}
		}
		Expect(noted).To(Equal(1), "the annotations do not grow")
	})
})

func names(secrets []corev1.Secret) []string {
	out := make([]string, len(secrets))
	for i := range secrets {
		out[i] = secrets[i].Name
	}
	return out
}

// busy writes the connection before each of the first `times` deletions, so that they fail with a conflict.
type busy struct {
	connect.ConnectionClient

	times int
}

func (b *busy) DeleteFor(ctx context.Context, of *v1alpha1.Connection, person string, now time.Time) error {
	if b.times > 0 {
		b.times--
		if err := b.Annotate(ctx, of, map[string]string{v1alpha1.ProbeAnnotation: string(rune('a' + b.times))}); err != nil {
			return err
		}
	}
	return b.ConnectionClient.DeleteFor(ctx, of, person, now)
}

var _ = Describe("Disconnecting an account for a user", func() {
	const kept = "example.com/kept"
	var (
		d      *desk
		others *busy
		name   string
	)
	BeforeEach(func(ctx SpecContext) {
		others = &busy{ConnectionClient: connections}
		d = newDesk(ctx, func(c *connect.Config) { c.Connections = others })
		name = d.connect(ctx, visitor("ann"), v1alpha1.PlatformX, newAccount(ctx, v1alpha1.PlatformX)).Connection.Name
		// A finalizer keeps the connection so that it can be inspected.
		found, _ := d.stored(ctx, name)
		base := found.DeepCopy()
		found.Finalizers = []string{kept}
		Expect(env.Client.Patch(ctx, found, client.MergeFrom(base))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			found, _ := d.stored(ctx, name)
			found.Finalizers = nil
			Expect(env.Client.Update(ctx, found)).To(Succeed())
		})
	})

	It("records the user's name on the deleted object despite concurrent writes", func(ctx SpecContext) {
		others.times = 2
		_, err := d.Disconnect(ctx, visitor("bob"), d.namespace, name)
		Expect(err).NotTo(HaveOccurred())
		found, _ := d.stored(ctx, name)
		Expect(found.DeletionTimestamp).NotTo(BeNil())
		Expect(found.Annotations).To(And(HaveKeyWithValue(v1alpha1.LastAuthorAnnotation, "bob"), HaveKeyWithValue(v1alpha1.AuthorAnnotation, "ann"),
			HaveKeyWithValue(v1alpha1.DisconnectedAnnotation, d.clock.Now().UTC().Format(time.RFC3339))), "the manager uses this time")
	})

	It("fails if the connection changes continuously, and reports it", func(ctx SpecContext) {
		others.times = 100
		_, err := d.Disconnect(ctx, visitor("bob"), d.namespace, name)
		refuses(err, bridge.CodeConflict, "keeps changing")
		found, _ := d.stored(ctx, name)
		Expect(found.DeletionTimestamp).To(BeNil())
	})
})
