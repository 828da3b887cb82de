// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/apikey"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

func TestAPIKeyController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "API key controller")
}

// The manager watches only the namespaces "managed" and "homeless", so that specs that call Reconcile step by step have
// a namespace to themselves.
const (
	managed = "managed"
	byHand  = "by-hand"
	// homeless has no team until a spec creates one. The manager watches it too.
	homeless = "homeless"
)

var (
	env    *envtest.Environment
	k8s    client.WithWatch
	serial atomic.Int64
	passes *envtest.Passes
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env = suite.Start()
	k8s = suite.Must(client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme}))
	Expect(env.Team(ctx, managed)).To(Succeed())
	for _, namespace := range []string{byHand, homeless} {
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}

	mgr := suite.Manager(env, env.Config, managed, homeless)
	teams := suite.Must(quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer()))
	passes = &envtest.Passes{Owned: teams.Owned}
	r := suite.Must(apikey.New(apikey.Options{
		Owned:  passes.IsOwned,
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("herald-apikey"),
	}))
	Expect(r.SetupWithManager(mgr)).To(Succeed())
	suite.Run(mgr)
})

func create(ctx context.Context, namespace string, spec v1alpha1.APIKeySpec) *v1alpha1.APIKey {
	GinkgoHelper()
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("key-%d", serial.Add(1))}, Spec: spec}
	Expect(k8s.Create(ctx, key)).To(Succeed())
	return key
}

func readiness(key *v1alpha1.APIKey) string {
	ready := meta.FindStatusCondition(key.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || key.Status.ObservedGeneration != key.Generation {
		return ""
	}
	return string(ready.Status) + " " + ready.Reason
}

func reload(ctx context.Context, key *v1alpha1.APIKey) func() (*v1alpha1.APIKey, error) {
	return func() (*v1alpha1.APIKey, error) {
		return key, k8s.Get(ctx, client.ObjectKeyFromObject(key), key)
	}
}

func secretOf(ctx context.Context, key *v1alpha1.APIKey) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := k8s.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "-token"}, &secret)
	return &secret, err
}

// hashes returns the hashes of a key's generated tokens by name.
func hashes(key *v1alpha1.APIKey) map[string]string {
	out := map[string]string{}
	for _, token := range key.Status.Tokens {
		out[token.Name] = token.SHA256
	}
	return out
}

func sha(key *v1alpha1.APIKey, secret *corev1.Secret) string {
	return apitoken.Hash(key.Namespace, key.Name, string(secret.Data[v1alpha1.APIKeyTokenKey]))
}

var _ = Describe("An APIKey", func() {
	It("without a token gets a token, in a Secret that is deleted with it", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		secret := suite.Must(secretOf(ctx, key))
		Expect(metav1.IsControlledBy(secret, key)).To(BeTrue())
		Expect(hashes(key)).To(Equal(map[string]string{"token": sha(key, secret)}))
		made := key.Status.Token("token")
		Expect(string(secret.Data[v1alpha1.APIKeyTokenKey])).To(HavePrefix(made.Prefix))
		Expect(made.SecretRef.Name).To(Equal(secret.Name))
		Expect(made.CreatedAt.Time).To(BeTemporally("~", time.Now(), time.Minute))
	})

	It("with the hash of an external token does not need a Secret", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "token", SHA256: strings.Repeat("a", 64)}}})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		Expect(hashes(key)).To(Equal(map[string]string{"token": ""}), "the token in the spec counts")
		_, err := secretOf(ctx, key)
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("is rotated: a second token is added, then the first is removed with its Secret", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		first, before := key.Status.Token("token").SHA256, key.Status.Token("token").SecretRef.Name

		key.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "token"}, {Name: "spring"}}
		Expect(k8s.Update(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(hashes, HaveLen(2)))
		var second corev1.Secret
		Expect(k8s.Get(ctx, types.NamespacedName{Namespace: managed, Name: key.Name + "-spring"}, &second)).To(Succeed())
		Expect(hashes(key)).To(Equal(map[string]string{"token": first, "spring": sha(key, &second)}))
		Expect(first).NotTo(Equal(sha(key, &second)))

		key.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "spring"}}
		Expect(k8s.Update(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(hashes, Equal(map[string]string{"spring": sha(key, &second)})))
		var gone corev1.Secret
		Expect(apierrors.IsNotFound(k8s.Get(ctx, types.NamespacedName{Namespace: managed, Name: before}, &gone))).To(BeTrue())
	})

	It("that is revoked loses its Secret, and remains revoked", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		key.Spec.Revoked = true
		Expect(k8s.Update(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False Revoked")))
		Expect(key.Status.Tokens).To(BeEmpty(), "no token is in force")
		_, err := secretOf(ctx, key)
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("expires at its time", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{ExpiresAt: v1alpha1.NewTimePtr(time.Now().Add(2 * time.Second))})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False Expired")))
	})

	It("remains valid when its Secret is deleted after the token was retrieved", func(ctx SpecContext) {
		key := create(ctx, managed, v1alpha1.APIKeySpec{})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		before := hashes(key)
		key.Status.LastUsedAt = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Status().Update(ctx, key)).To(Succeed())
		secret := suite.Must(secretOf(ctx, key))
		Expect(k8s.Delete(ctx, secret)).To(Succeed())
		key.Spec.Description = "woken"
		Expect(k8s.Update(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		Expect(hashes(key)).To(Equal(before))
		Expect(key.Status.LastUsedAt).NotTo(BeNil(), "the apiserver's record of the last use remains")
	})

	It("does not adopt a token from a Secret of another origin", func(ctx SpecContext) {
		name := fmt.Sprintf("key-%d", serial.Add(1))
		planted := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: name + "-token"},
			Data:       map[string][]byte{"token": []byte(apitoken.New(managed, name))},
		}
		Expect(k8s.Create(ctx, planted)).To(Succeed())
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: name}}
		Expect(k8s.Create(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False SecretRefused")))
		Expect(key.Status.Tokens).To(BeEmpty())
		key.Spec.Revoked = true
		Expect(k8s.Update(ctx, key)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False Revoked")))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(planted), planted)).To(Succeed(), "other tools' Secrets are not deleted")
	})
})

func newReconciler(c client.Client, now clock.PassiveClock) *apikey.Reconciler {
	GinkgoHelper()
	return suite.Must(apikey.New(apikey.Options{Client: c, APIReader: k8s, Owned: envtest.EveryNamespace, Clock: now}))
}

var _ = Describe("A manager that is killed during a reconciliation", func() {
	It("issues one token, whichever write was the last one", func(ctx SpecContext) {
		boom := errors.New("boom")
		key := create(ctx, byHand, v1alpha1.APIKeySpec{})
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(key)}
		now := clocktesting.NewFakePassiveClock(time.Now())

		By("dying between the writes of the Secret and the status")
		dying := interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return boom
			},
		})
		_, err := newReconciler(dying, now).Reconcile(ctx, request)
		Expect(err).To(MatchError(boom))
		secret := suite.Must(secretOf(ctx, key))

		By("coming back")
		for range 2 {
			Expect(newReconciler(k8s, now).Reconcile(ctx, request)).Error().NotTo(HaveOccurred())
		}
		Expect(reload(ctx, key)()).To(WithTransform(readiness, Equal("True Active")))
		Expect(hashes(key)).To(Equal(map[string]string{"token": sha(key, secret)}))
	})

	It("finishes a revocation", func(ctx SpecContext) {
		key := create(ctx, byHand, v1alpha1.APIKeySpec{})
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(key)}
		_, err := newReconciler(k8s, clock.RealClock{}).Reconcile(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(reload(ctx, key)()).NotTo(BeNil())
		key.Spec.Revoked = true
		Expect(k8s.Update(ctx, key)).To(Succeed())

		boom := errors.New("boom")
		dying := interceptor.NewClient(k8s, interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return boom },
		})
		_, err = newReconciler(dying, clock.RealClock{}).Reconcile(ctx, request)
		Expect(err).To(MatchError(boom))
		Expect(newReconciler(k8s, clock.RealClock{}).Reconcile(ctx, request)).Error().NotTo(HaveOccurred())
		_, err = secretOf(ctx, key)
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(reload(ctx, key)()).To(WithTransform(readiness, Equal("False Revoked")))
	})
})
