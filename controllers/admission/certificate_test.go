// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/webhookcert"
	"github.com/herald-social/herald/test/suite"
)

const secretName = "herald-webhook-certificate"

func secret(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	s := &corev1.Secret{}
	Expect(user.Get(ctx, types.NamespacedName{Namespace: system, Name: secretName}, s)).To(Succeed())
	return s
}

func trusted(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(user.Get(ctx, types.NamespacedName{Name: "herald"}, c)).To(Succeed())
	return c
}

// The Rotators in these specs have the manager's permissions, and share its Secret and its webhook configuration.
var _ = Describe("the webhook's certificate", Serial, Ordered, func() {
	AfterAll(func(ctx SpecContext) {
		// Replace certificates from other times with a valid one, and have the webhook serve it, regardless of which spec
		// runs next.
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		Expect(serving.Check(ctx)).To(Succeed())
	})

	It("is created once and shared by several replicas", func(ctx SpecContext) {
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		served := make([][]byte, 6)
		var replicas sync.WaitGroup
		for i := range served {
			replicas.Go(func() {
				defer GinkgoRecover()
				k := keeper(secretName, "herald", clock.RealClock{})
				_, err := k.GetCertificate(nil)
				Expect(err).To(MatchError(ContainSubstring("not made yet")))
				Expect(k.Check(ctx)).To(Succeed())
				c := suite.Must(k.GetCertificate(nil))
				served[i] = c.Certificate[0]
			})
		}
		replicas.Wait()
		for i := range served {
			Expect(served[i]).To(Equal(served[0]))
		}
		Expect(trusted(ctx).Webhooks[0].ClientConfig.CABundle).To(Equal(secret(ctx).Data["ca.crt"]))
	})

	It("is renewed before it expires, while its predecessor is still trusted", func(ctx SpecContext) {
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		now := clocktesting.NewFakeClock(time.Now().Add(-300 * 24 * time.Hour))
		k := keeper(secretName, "herald", now)
		Expect(k.Check(ctx)).To(Succeed())
		old := suite.Must(k.GetCertificate(nil))
		before := secret(ctx).ResourceVersion
		Expect(k.Check(ctx)).To(Succeed())
		Expect(secret(ctx).ResourceVersion).To(Equal(before), "the certificate is unchanged, and not written")

		now.SetTime(time.Now())
		Expect(k.Check(ctx)).To(Succeed())
		fresh := suite.Must(k.GetCertificate(nil))
		Expect(bytes.Equal(old.Certificate[0], fresh.Certificate[0])).To(BeFalse())
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM(trusted(ctx).Webhooks[0].ClientConfig.CABundle)).To(BeTrue())
		for _, der := range [][]byte{old.Certificate[0], fresh.Certificate[0]} {
			leaf := suite.Must(x509.ParseCertificate(der))
			Expect(leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"})).Error().NotTo(HaveOccurred())
		}
	})

	It("is renewed automatically, and served and trusted from the next connection on", func(ctx SpecContext) {
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		now := clocktesting.NewFakeClock(time.Now().Add(-300 * 24 * time.Hour))
		k := keeper(secretName, "herald", now)
		listener := suite.Must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: k.GetCertificate}))
		server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
		go func() { _ = server.Serve(listener) }()
		DeferCleanup(server.Close)
		served := func() *x509.Certificate {
			certificates, err := webhookcert.Served(ctx, listener.Addr().String())
			if err != nil {
				return nil
			}
			return certificates[0]
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- k.Start(running) }()
		Eventually(served).ShouldNot(BeNil())
		first := served()
		Expect(webhookcert.Untrusted(trusted(ctx), []*x509.Certificate{first}, now.Now())).To(Succeed())

		// A day before a third of the lifetime remains, nothing changes; two days later, the certificate is renewed.
		third := first.NotAfter.Sub(first.NotBefore) / 3
		for _, tc := range []struct {
			until   time.Time
			renewed bool
		}{{first.NotAfter.Add(-third - 24*time.Hour), false}, {first.NotAfter.Add(-third + 24*time.Hour), true}} {
			Eventually(now.HasWaiters).Should(BeTrue())
			now.SetTime(tc.until)
			Eventually(now.HasWaiters).Should(BeTrue(), "the check has finished")
			Expect(served().Equal(first)).To(Equal(!tc.renewed))
			Expect(webhookcert.Untrusted(trusted(ctx), []*x509.Certificate{served()}, now.Now())).To(Succeed())
		}
		Expect(served().NotAfter).To(BeTemporally(">", first.NotAfter))
		stop()
		Eventually(ended).Should(Receive(Succeed()))
	})

	It("is created once for replicas with different names, as in a rollout", func(ctx SpecContext) {
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		before := keeper(secretName, "herald", clock.RealClock{}, "old.svc")
		after := keeper(secretName, "herald", clock.RealClock{}, "new.svc")
		Expect(before.Check(ctx)).To(Succeed())
		Expect(after.Check(ctx)).To(Succeed())
		version := secret(ctx).ResourceVersion
		for range 3 {
			Expect(before.Check(ctx)).To(Succeed())
			Expect(after.Check(ctx)).To(Succeed())
		}
		Expect(secret(ctx).ResourceVersion).To(Equal(version), "neither replaces the other's certificate")
		c := suite.Must(before.GetCertificate(nil))
		leaf := suite.Must(x509.ParseCertificate(c.Certificate[0]))
		Expect(leaf.DNSNames).To(ConsistOf("old.svc", "new.svc"))
		Expect(leaf.IPAddresses).To(HaveLen(1))
	})

	It("is trusted again after the configuration was applied again", func(ctx SpecContext) {
		c := trusted(ctx)
		c.Webhooks[0].ClientConfig.CABundle = nil
		Expect(user.Update(ctx, c)).To(Succeed())
		Expect(keeper(secretName, "herald", clock.RealClock{}).Check(ctx)).To(Succeed())
		Expect(trusted(ctx).Webhooks[0].ClientConfig.CABundle).To(Equal(secret(ctx).Data["ca.crt"]))
	})

	It("exists only as long as its webhook configuration", func(ctx SpecContext) {
		configuration := trusted(ctx)
		Expect(user.Delete(ctx, configuration)).To(Succeed())
		Expect(user.Delete(ctx, secret(ctx))).To(Succeed())
		k := keeper(secretName, "herald", clock.RealClock{})
		Expect(k.Check(ctx)).To(Succeed())
		absent := user.Get(ctx, types.NamespacedName{Namespace: system, Name: secretName}, &corev1.Secret{})
		Expect(apierrors.IsNotFound(absent)).To(BeTrue(), "%v", absent)

		configuration.ResourceVersion, configuration.UID = "", ""
		Expect(user.Create(ctx, configuration)).To(Succeed())
		Expect(k.Check(ctx)).To(Succeed())
		Expect(secret(ctx).OwnerReferences).To(ConsistOf(HaveField("UID", trusted(ctx).UID)))
		Expect(trusted(ctx).Webhooks[0].ClientConfig.CABundle).To(Equal(secret(ctx).Data["ca.crt"]))
	})

	It("is stored for one configuration", func(ctx SpecContext) {
		Expect(keeper(secretName, "none", clock.RealClock{}).Check(ctx)).NotTo(Succeed(), "the manager may name one configuration only")
	})
})

var _ = Describe("The webhook", func() {
	// ask sends a review to any path, in the API server's format.
	ask := func(ctx context.Context, path string) (status int, answer string) {
		GinkgoHelper()
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"` + team + `","operation":"CREATE",
			"object":{"apiVersion":"social.herald.dev/v1alpha1","kind":"Post","metadata":{"namespace":"` + team + `","name":"a"},
			"spec":{"category":"text","targets":[{"connectionRef":{"name":"not-there"},"caption":"a"}]}}}}`
		request := suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, strings.NewReader(review)))
		request.Header.Set("Content-Type", "application/json")
		response, err := (&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}).RoundTrip(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body := suite.Must(io.ReadAll(response.Body))
		return response.StatusCode, string(body)
	}

	It("reveals a team's accounts only to the API server, which is configured with its address", func(ctx SpecContext) {
		for _, path := range []string{"/validate-post", "/validate-post/", "/validate-post/guess", "/"} {
			status, answer := ask(ctx, path)
			Expect(status).To(Equal(http.StatusNotFound), path)
			Expect(answer).NotTo(ContainSubstring("not-there"), path)
		}
		known := suite.Must(url.Parse(*trusted(ctx).Webhooks[0].ClientConfig.URL))
		Expect(known.Path).To(Equal("/validate-post/" + string(secret(ctx).Data["word"])))
		status, answer := ask(ctx, known.Path)
		Expect(status).To(Equal(http.StatusOK))
		Expect(answer).To(ContainSubstring("not-there"))
	})
})
