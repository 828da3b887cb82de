// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/managertest"
)

// webhook is a manager with its admission webhook behind a door.
type webhook struct {
	manager *manager
	door    *door
	// saved is an object that a failure deletes, to be restored afterwards.
	saved client.Object
}

// startWebhook starts a manager, whose webhook the API server calls through a door, and waits until it rejects an
// invalid post.
func startWebhook(ctx context.Context, change ...func(*configv1alpha1.ManagerConfiguration)) *webhook {
	GinkgoHelper()
	w := &webhook{door: newDoor(ports.ForTest(GinkgoT()))}
	configure(ctx, w.door.address)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, configuration()))).To(Succeed())
	})
	w.start(change...)
	applyDemo(ctx)
	return w
}

// start starts the manager. Its webhook listens at the address to which the door forwards.
func (w *webhook) start(change ...func(*configv1alpha1.ManagerConfiguration)) {
	GinkgoHelper()
	w.manager = startManager(append(change, func(c *configv1alpha1.ManagerConfiguration) { c.Webhook.BindAddress = w.door.target })...)
}

func configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "herald"}}
}

// configure applies the shipped webhook configuration with another address and a shorter timeout.
func configure(ctx context.Context, address string) {
	GinkgoHelper()
	Expect(cluster.ApplyWebhook(ctx, admin, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+address)).To(Succeed())
	reconfigure(ctx, func(w *admissionregistrationv1.ValidatingWebhook) {
		Expect(w.FailurePolicy).To(HaveValue(Equal(admissionregistrationv1.Ignore)))
		w.TimeoutSeconds = new(int32(1))
	})
}

// reconfigure changes the webhook's configuration.
func reconfigure(ctx context.Context, change func(*admissionregistrationv1.ValidatingWebhook)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := configuration()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		change(&c.Webhooks[0])
		return admin.Update(ctx, c)
	})).To(Succeed())
}

// probe creates an invalid post as a dry run and returns the error.
func probe(ctx context.Context) error { return admin.Create(ctx, post(tooLong), client.DryRunAll) }

// expectRefusals waits until the webhook rejects an invalid post with the expected message.
func expectRefusals(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error { return probe(ctx) }).Should(MatchError(And(
		ContainSubstring("posts.social.herald.dev"), ContainSubstring("spec.targets[0].caption"))))
}

// failure is one way that the webhook can fail.
type failure struct {
	// breaks makes the webhook fail; mends repairs it.
	breaks, mends func(ctx context.Context, w *webhook)
	// served and trusted are the expected values of the metrics during the failure.
	served, trusted float64
}

// withoutWebhook checks that, while the webhook fails, the API server accepts every post and the reconciler validates
// it.
func withoutWebhook(ctx context.Context, w *webhook, f failure) {
	GinkgoHelper()
	expectRefusals(ctx)
	w.manager.expectMetrics(1, 1)
	f.breaks(ctx, w)
	Eventually(func() error { return probe(ctx) }).Should(Succeed(), "the webhook fails")
	Eventually(w.manager.ready).Should(Succeed())
	w.manager.expectMetrics(f.served, f.trusted)
	before := calls(ctx)

	invalid, valid, edited := post(tooLong), post("valid"), post("edited")
	edited.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour))
	for _, p := range []*v1alpha1.Post{invalid, valid, edited} {
		Expect(admin.Create(ctx, p)).To(Succeed())
	}
	change(ctx, edited, tooLong)
	expectPosted(ctx, valid)
	expectInvalid(ctx, invalid, "spec.targets[0].caption")
	expectInvalid(ctx, edited, "spec.targets[0].caption")
	Expect(online(ctx, valid.Spec.Targets[0].Caption)).To(Equal(1))
	Expect(calls(ctx)).To(Equal(before+1), "the platform only receives the valid post")

	change(ctx, invalid, "mended "+invalid.Name)
	expectPosted(ctx, invalid)
	Expect(calls(ctx)).To(Equal(before + 2))

	f.mends(ctx, w)
	expectRefusals(ctx)
	w.manager.expectMetrics(1, 1)
}

// change updates a post's caption.
func change(ctx context.Context, p *v1alpha1.Post, caption string) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		p.Spec.Targets[0].Caption = caption
		return admin.Update(ctx, p)
	}).Should(Succeed())
}

// certificate is the Secret with the manager's certificate.
var certificate = client.ObjectKey{Namespace: managertest.Namespace, Name: "herald-webhook-certificate"}

// The manager creates and stores the certificate, as in an installation without cert-manager.
var _ = Describe("Without its webhook", func() {
	DescribeTable("the manager delivers valid posts only, if", func(ctx SpecContext, f failure) {
		withoutWebhook(ctx, startWebhook(ctx), f)
	},
		Entry("the webhook does not listen", failure{
			func(_ context.Context, w *webhook) { w.door.lock() },
			func(_ context.Context, w *webhook) { w.door.unlock() }, 1, 1,
		}),
		Entry("the webhook takes longer than its timeout", failure{
			func(_ context.Context, w *webhook) { w.door.stall(true) },
			func(_ context.Context, w *webhook) { w.door.stall(false) }, 1, 1,
		}),
		Entry("the configuration is missing", failure{
			func(ctx context.Context, w *webhook) {
				w.saved = configuration()
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(w.saved), w.saved)).To(Succeed())
				Expect(admin.Delete(ctx, configuration())).To(Succeed())
			},
			func(ctx context.Context, w *webhook) {
				w.saved.SetResourceVersion("")
				Expect(admin.Create(ctx, w.saved)).To(Succeed())
			}, 1, 0,
		}),
		Entry("the manager may not read the Secret of its certificate when it starts", failure{
			func(ctx context.Context, w *webhook) {
				w.manager.Stop()
				w.saved = &rbacv1.RoleBinding{}
				Expect(admin.Get(ctx, certificate, w.saved)).To(Succeed())
				Expect(admin.Delete(ctx, w.saved)).To(Succeed())
				w.start()
			},
			func(ctx context.Context, w *webhook) {
				Expect(w.manager.Log()).To(ContainSubstring("cannot read Secret " + certificate.String()))
				w.saved.SetResourceVersion("")
				Expect(admin.Create(ctx, w.saved)).To(Succeed())
			}, 0, 0,
		}),
		Entry("the manager may not put its authority into the configuration", failure{
			func(ctx context.Context, w *webhook) {
				w.manager.Stop()
				role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "herald-manager"}}
				Expect(admin.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
				w.saved = role.DeepCopy()
				role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.Resources, "validatingwebhookconfigurations")
				})
				Expect(role.Rules).NotTo(HaveLen(len(w.saved.(*rbacv1.ClusterRole).Rules)))
				Expect(admin.Update(ctx, role)).To(Succeed())
				reconfigure(ctx, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = nil })
				w.start()
			},
			func(ctx context.Context, w *webhook) {
				Expect(w.manager.Log()).To(ContainSubstring("cannot read ValidatingWebhookConfiguration herald"))
				w.saved.SetResourceVersion("")
				Expect(admin.Update(ctx, w.saved)).To(Succeed())
			}, 1, 0,
		}),
	)

	It("the manager replaces a certificate that has ended, or is of another authority", func(ctx SpecContext) {
		w := startWebhook(ctx)
		expectRefusals(ctx)
		for _, until := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
			w.manager.Stop()
			folder, other := GinkgoT().TempDir(), newAuthority()
			other.issue(folder, until)
			secret := &corev1.Secret{}
			Expect(admin.Get(ctx, certificate, secret)).To(Succeed())
			secret.Data = map[string][]byte{"ca.crt": newAuthority().bundle(), "tls.crt": read(folder, "tls.crt"), "tls.key": read(folder, "tls.key")}
			Expect(admin.Update(ctx, secret)).To(Succeed())
			Eventually(func() error { return probe(ctx) }).Should(Succeed(), "the endpoint does not respond")
			w.start()
			expectRefusals(ctx)
			w.manager.expectMetrics(1, 1)
		}
	})
})

// In these specs, another program creates the certificate and sets the CA bundle, as cert-manager does.
var _ = Describe("With a certificate of another program", func() {
	var (
		folder string
		maker  *authority
	)
	start := func(ctx context.Context) *webhook {
		GinkgoHelper()
		folder, maker = GinkgoT().TempDir(), newAuthority()
		maker.issue(folder, time.Now().Add(24*time.Hour))
		w := startWebhook(ctx, func(c *configv1alpha1.ManagerConfiguration) { c.Webhook.CertDir = folder })
		trust(ctx, maker)
		return w
	}
	DescribeTable("the manager delivers valid posts only", func(ctx SpecContext, f failure) {
		withoutWebhook(ctx, start(ctx), f)
	},
		Entry("if the certificate has expired", failure{
			func(_ context.Context, w *webhook) {
				maker.issue(folder, time.Now().Add(-time.Hour))
				Eventually(func(g Gomega) {
					left, found := w.manager.metric(g, "herald_webhook_certificate_expiry_seconds")
					g.Expect(found).To(BeTrue())
					g.Expect(left).To(BeNumerically("~", -time.Hour.Seconds(), 60))
				}).Should(Succeed(), "the metrics show the replaced certificate")
				w.door.cut()
			},
			func(_ context.Context, w *webhook) { maker.issue(folder, time.Now().Add(24*time.Hour)) }, 1, 0,
		}),
		Entry("if the configuration trusts another authority", failure{
			func(ctx context.Context, w *webhook) {
				trust(ctx, newAuthority())
				w.door.cut()
			},
			func(ctx context.Context, _ *webhook) { trust(ctx, maker) }, 1, 0,
		}),
	)
})

// trust sets the authority as the webhook configuration's CA bundle.
func trust(ctx context.Context, a *authority) {
	GinkgoHelper()
	reconfigure(ctx, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = a.bundle() })
}

func read(folder, file string) []byte {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(folder, file))
	Expect(err).NotTo(HaveOccurred())
	return data
}
