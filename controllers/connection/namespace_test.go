// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/test/suite"
)

// The states of the specs' namespaces.
const (
	lives             = "lives"
	ends              = "ends"
	deletedConnection = "is gone"
	// untold is gone, but the API server does not report it.
	untold = "is not told of"
)

var _ = Describe("A namespace in which Herald may not read Secrets", Ordered, func() {
	// bare is the API server as the manager sees it after the role binding for the team's Secrets was deleted.
	var bare client.WithWatch
	// asked receives a value for each read of a Secret.
	var asked chan struct{}

	BeforeAll(func(ctx SpecContext) {
		const name = "without-secrets"
		Expect(k8s.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"connections"}, Verbs: []string{"get", "list"}},
		}})).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})).To(Succeed())
		limited := rest.CopyConfig(server)
		limited.Impersonate = rest.ImpersonationConfig{UserName: name}
		bare = suite.Must(client.NewWithWatch(limited, client.Options{Scheme: k8s.Scheme()}))
	})

	BeforeEach(func() { asked = make(chan struct{}, 100) })

	// reached returns the API server with a namespace in the given state.
	reached := func(state string) client.Client {
		return interceptor.NewClient(bare, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				switch obj.(type) {
				case *corev1.Secret:
					asked <- struct{}{}
				case *metav1.PartialObjectMetadata:
					if state == untold {
						return apierrors.NewServiceUnavailable("away")
					}
				}
				return api.Get(ctx, key, obj, opts...)
			},
		})
	}

	// connectionIn returns a connection in a namespace with the given state.
	connectionIn := func(ctx context.Context, state string) *v1alpha1.Connection {
		GinkgoHelper()
		id := fmt.Sprint(1000 + serial.Add(1))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending-" + id}}
		Expect(k8s.Create(ctx, namespace)).To(Succeed())
		if state != lives {
			Expect(k8s.Delete(ctx, namespace)).To(Succeed())
		}
		if state == deletedConnection || state == untold {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			namespace.Spec.Finalizers = nil
			Expect(k8s.SubResource("finalize").Update(ctx, namespace)).To(Succeed())
			Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))).To(BeTrue())
		}
		return &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ending-" + id, Name: "acme", UID: "1-2-3"},
			Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: id},
		}
	}

	DescribeTable("retries the cleanup of a deleted connection, unless its tokens are gone", func(ctx SpecContext, state string, retried bool, reason string) {
		conn := connectionIn(ctx, state)
		r := pod{platform: v1alpha1.PlatformX, client: platform, folder: GinkgoT().TempDir()}.start(reached(state))
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		DeferCleanup(queue.ShutDown)
		r.Deletions().Delete(ctx, event.DeleteEvent{Object: conn}, queue)
		request, _ := queue.Get()
		result, err := r.Reconcile(ctx, request)
		Expect(asked).To(Receive(), "the tokens are examined")
		Expect(result.RequeueAfter).To(BeZero())
		if retried {
			Expect(err).To(MatchError(ContainSubstring("no permission to read Secret")), reason)
		} else {
			Expect(err).NotTo(HaveOccurred(), reason)
		}
	},
		Entry(nil, lives, true, "a Team that becomes ready gives the right back"),
		Entry(nil, ends, false, "the namespace is deleted"),
		Entry(nil, deletedConnection, false, "the tokens were deleted with the connection"),
		Entry(nil, untold, true, "the deletion is not certain"),
	)

	DescribeTable("decides whether a sealed token is kept", func(ctx SpecContext, state string, kept int, reason string) {
		p := pod{platform: v1alpha1.PlatformX, client: platform, folder: GinkgoT().TempDir()}
		Expect(p.open().Save(credentials.UnsavedToken{
			Account: credentials.SpoolAccountOf(connectionIn(ctx, state)), Token: credentials.Token{Access: "new", Refresh: "new-refresh", ExpiresAt: time.Now().Add(time.Hour)}, From: "the one before",
		})).To(Succeed())
		running, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan struct{})
		r := p.start(reached(state))
		go func() { defer close(ended); r.Recover(running) }()
		Eventually(asked).Should(Receive())
		if kept > 0 {
			Eventually(asked).Should(Receive(), "the cleanup is retried")
			stop()
		}
		Eventually(ended).Should(BeClosed(), reason)
		Expect(p.storedTokens()).To(Equal(kept), reason)
	},
		Entry(nil, lives, 1, "a Team that becomes ready gives the right back"),
		Entry(nil, ends, 1, "the Secrets may still exist"),
		Entry(nil, deletedConnection, 0, "no account can own the Secrets"),
		Entry(nil, untold, 1, "the deletion is not certain"),
	)
})
