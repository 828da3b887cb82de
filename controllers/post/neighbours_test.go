// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("A team isolated from another", func() {
	var attacker, victim team
	BeforeEach(func(ctx SpecContext) {
		attacker, victim = newTeam(ctx), newTeam(ctx)
		runManager()
	})

	It("is not delayed by the limit of an app that the other team uses", func(ctx SpecContext) {
		attacker.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusPaymentRequired, Times: 1000})
		refused := attacker.post(ctx, "of an app without credits")
		Eventually(func() string { return readyReason(ctx, refused) }).Should(Equal(v1alpha1.ReasonRateLimited))

		p := victim.post(ctx, "of Herald's app, which has some")
		Eventually(phase(ctx, p), 10*time.Second).Should(Equal(v1alpha1.PhasePosted))
		conn := attacker.connection(ctx)
		Expect(conn.Status.AppRateLimitedUntil).To(BeNil())
		Expect(conn.Status.RateLimitedUntil).NotTo(BeNil(), "the rate-limited account waits")
	})

	It("keeps its own publications although the other team claims them", func(ctx SpecContext) {
		By("creating a post whose publication cannot be verified: an annotation suffices")
		fake := attacker.post(ctx, "never sent", restored)
		Eventually(func() string { return readyReason(ctx, fake) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(attacker.account)).To(BeZero())

		By("losing the response to the victim's call")
		victim.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		claimed := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(claimed)
			claim(context.WithoutCancel(ctx), victim, fake)
		}()
		p := victim.post(ctx, "hello from the victim")
		Eventually(claimed).Should(BeClosed())
		Eventually(phase(ctx, p), 40*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(victim.account)).To(Equal(1))
		Expect(victim.published(ctx)).To(HaveLen(1))
		Expect(saidWrong(ctx, fake)()).To(ContainSubstring("does not belong to account"))
		Expect(readyReason(ctx, fake)).To(Equal(v1alpha1.ReasonOutcomeUnknown), "the user has to answer again")
	})

	It("reports its user's answer, and that the platform did not confirm it", func(ctx SpecContext) {
		Eventually(phase(ctx, attacker.post(ctx, "sent before the backup"))).Should(Equal(v1alpha1.PhasePosted))
		online := suite.Must(platform.Posts(ctx, "x", attacker.account.ID))
		for id, unconfirmed := range map[string]bool{online[0].ID: false, "42": true} {
			p := attacker.post(ctx, "sent before the backup", restored)
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
			settle(ctx, p, "0=posted:"+id)
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			t := read(ctx, p).Status.Targets[0]
			Expect(t.ExternalID).To(Equal(id))
			Expect(t.Unconfirmed).To(Equal(unconfirmed), id)
			account := attacker.account.ID
			if unconfirmed {
				account = ""
			}
			Expect(t.Attempt.AccountID).To(Equal(account), "an unconfirmed id belongs to no account")
		}
	})

	It("never publishes to an unverified account", func(ctx SpecContext) {
		By("a connection that names the account of another token, while the platform does not identify it")
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: victim.namespace},
			StringData: map[string]string{v1alpha1.CredentialsAccessToken: victim.account.AccessToken},
		})).To(Succeed())
		Expect(k8s.Create(ctx, &v1alpha1.Connection{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: victim.namespace},
			Spec: v1alpha1.ConnectionSpec{
				Platform: v1alpha1.PlatformX, AccountID: "999", CredentialsSecretRef: v1alpha1.LocalReference{Name: "new"},
			},
		})).To(Succeed())
		victim.setReady(ctx, "new", metav1.ConditionFalse, v1alpha1.ReasonPlatformUnavailable, "")
		p := victim.post(ctx, "for account 999", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "new" })
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonConnectionNotReady))
		Consistently(func() int { return publishesBy(victim.account) }, time.Second).Should(BeZero())
	})
})

// claim waits for a team's first post, and then resolves another team's post with its id.
func claim(ctx context.Context, of team, fake *v1alpha1.Post) {
	var id string
	Eventually(func() bool {
		posts, err := platform.Posts(ctx, "x", of.account.ID)
		if err == nil && len(posts) > 0 {
			id = posts[0].ID
		}
		return id != ""
	}, 20*time.Second, 10*time.Millisecond).Should(BeTrue())
	settle(ctx, fake, "0=posted:"+id)
}

// refusing responds to requests for the record of the post "odd" with a store error, if they use the given method; ""
// matches any method.
func refusing(method string, status int, code string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/posts/odd.json") || method != "" && req.Method != method {
			return nil, nil
		}
		body := "<Error><Code>" + code + "</Code><Message>no</Message></Error>"
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(bytes.NewBufferString(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// unreachable loses the requests for the record of the post "odd".
func unreachable(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/posts/odd.json") {
		return nil, errCut
	}
	return nil, nil
}

// acceptedReason returns the reason of a post's Accepted condition, or "" if there is none.
func acceptedReason(ctx context.Context, p *v1alpha1.Post) string {
	if accepted := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionAccepted); accepted != nil {
		return accepted.Reason
	}
	return ""
}

var _ = Describe("A store fault that affects one post", func() {
	var k *keeping
	var acme team
	BeforeEach(func(ctx SpecContext) {
		k = newKeeping()
		runManager(k.options)
		acme = newTeam(ctx)
	})
	// healthy creates and deletes other posts of the team.
	healthy := func(ctx context.Context) {
		GinkgoHelper()
		for i := range 3 {
			p := posted(ctx, acme.apply(ctx, fmt.Sprint("healthy-", i), fmt.Sprint("hello for the time ", i)))
			remove(ctx, p)
			Expect(k.of(ctx, acme.namespace, p.Name)).NotTo(BeNil())
		}
	}

	DescribeTable("keeps that post from being sent again, and does not affect others:", func(ctx SpecContext, fault func(*http.Request) (*http.Response, error)) {
		k.refuses.Store(&fault)
		odd := acme.apply(ctx, "odd", "the odd one")
		Eventually(func() string { return acceptedReason(ctx, odd) }).Should(Equal(v1alpha1.ReasonRecordUnavailable))
		healthy(ctx)
		Expect(publishesBy(acme.account)).To(Equal(3))
		Expect(acceptedReason(ctx, odd)).To(Equal(v1alpha1.ReasonRecordUnavailable))
		k.refuses.Store(nil)
		Eventually(phase(ctx, odd)).WithTimeout(time.Minute).Should(Equal(v1alpha1.PhasePosted))
	},
		Entry("a key that is too long for the store", refusing("", http.StatusBadRequest, "KeyTooLongError")),
		Entry("a name that the store's disk does not accept", refusing("", http.StatusBadRequest, "XMinioInvalidObjectName")),
		Entry("a policy for that key", refusing("", http.StatusForbidden, "AccessDenied")),
		Entry("a document in cold storage", refusing("", http.StatusForbidden, "InvalidObjectState")),
		Entry("a connection that drops its requests", unreachable),
	)

	DescribeTable("delays that post's deletion for an hour, and does not affect others:", func(ctx SpecContext, fault func(*http.Request) (*http.Response, error)) {
		odd := acme.apply(ctx, "odd", "the odd one")
		k.refuses.Store(&fault)
		Eventually(phase(ctx, odd)).Should(Equal(v1alpha1.PhasePosted))
		Expect(k8s.Delete(ctx, odd)).To(Succeed())
		Eventually(warned(ctx, acme.namespace, odd.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		healthy(ctx)
		Expect(gone(ctx, odd)()).To(BeFalse())
		k.ahead.Store(int64(62 * time.Minute))
		healthy := posted(ctx, acme.apply(ctx, "healthy", "hello an hour later"))
		Eventually(gone(ctx, odd)).Should(BeTrue())
		Eventually(warned(ctx, acme.namespace, odd.Name, v1alpha1.ReasonRecordAbandoned)).ShouldNot(BeEmpty())
		remove(ctx, healthy)
		Expect(k.of(ctx, acme.namespace, healthy.Name)).NotTo(BeNil())
	},
		Entry("a key that is too long for the store", refusing(http.MethodPut, http.StatusBadRequest, "KeyTooLongError")),
		Entry("a policy for that key", refusing(http.MethodPut, http.StatusForbidden, "AccessDenied")),
	)
})

var _ = Describe("A URL that an editor writes into an upload session's Secret", func() {
	It("is never requested, and the post is published without it", func(ctx SpecContext) {
		var calls atomic.Int32
		// inside is a service that only the manager's network can reach.
		inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(http.StatusPermanentRedirect)
		}))
		defer inside.Close()
		runManager(func(o *post.Options) {
			o.Platforms[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{APIURL: platform.URL + "/youtube", WebURL: platform.URL + "/youtube"},
				transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
		})
		t := newTeam(ctx)
		t.account = t.connectTo(ctx, v1alpha1.PlatformYouTube, "youtube", fmt.Sprintf("UC%022d", serial.Add(1)), nil)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "film"}, &media)).To(Succeed())
		var conn v1alpha1.Connection
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "youtube"}, &conn)).To(Succeed())

		By("a draft, whose UID is part of the Secret's name, and whose content determines the hash")
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Draft = true
			p.Spec.Targets[0].ConnectionRef.Name = "youtube"
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "t"}
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
		})
		Eventually(func() []v1alpha1.TargetStatus { return read(ctx, p).Status.Targets }).ShouldNot(BeEmpty())
		address := inside.URL + "/-/quit?any=query"
		sum := sha256.Sum256([]byte(address))
		planted := suite.Must(json.Marshal(map[string]string{
			"contentHash": delivery.ContentHash(read(ctx, p), 0, &conn, map[string]*v1alpha1.Media{"film": &media}),
			"checkpoint":  base64.RawURLEncoding.EncodeToString(sum[:9]), "secret": "0 " + address,
		}))
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "herald-uploads-" + string(p.UID), Namespace: t.namespace},
			Data:       map[string][]byte{"0": planted},
		})).To(Succeed())
		By("publish it")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(calls.Load()).To(BeZero())
	})
})
