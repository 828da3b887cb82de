// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// byHand publishes on X without Herald, through the account's own app, and returns the id.
func (t team) byHand(ctx context.Context, text string) string {
	GinkgoHelper()
	body := suite.Must(json.Marshal(map[string]string{"text": text}))
	return published(ctx, t.account, "/x/2/tweets", "application/json", string(body))
}

// published makes a call to the sandbox as an account, and returns the id in the response.
func published(ctx context.Context, account sandboxtest.Account, path, kind, body string) string {
	GinkgoHelper()
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodPost, platform.URL+path, strings.NewReader(body)))
	request.Header.Set("Authorization", "Bearer "+account.AccessToken)
	request.Header.Set("Content-Type", kind)
	answer := suite.Must(http.DefaultClient.Do(request))
	defer func() { Expect(answer.Body.Close()).To(Succeed()) }()
	var made struct {
		ID   string `json:"id"`
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	Expect(json.NewDecoder(answer.Body).Decode(&made)).To(Succeed())
	Expect(made.ID+made.Data.ID).NotTo(BeEmpty(), answer.Status)
	return made.ID + made.Data.ID
}

// lookAgain requests a new list of candidates.
func lookAgain(ctx context.Context, p *v1alpha1.Post) {
	GinkgoHelper()
	now := read(ctx, p)
	base := now.DeepCopy()
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, v1alpha1.ListCandidatesAnnotation, "now")
	Expect(k8s.Patch(ctx, now, client.MergeFrom(base))).To(Succeed())
	Eventually(func() map[string]string { return read(ctx, p).Annotations }).ShouldNot(HaveKey(v1alpha1.ListCandidatesAnnotation))
}

// offered returns the ids of the first target's candidates.
func offered(ctx context.Context, p *v1alpha1.Post) (ids []string) {
	for _, c := range read(ctx, p).Status.Targets[0].Candidates {
		ids = append(ids, c.ExternalID)
	}
	return ids
}

var _ = Describe("The posts among which a person finds one in doubt", Ordered, func() {
	BeforeAll(func() {
		runManager(func(o *post.Options) {
			o.StartingDeadline = 8 * time.Second
			o.Platforms[v1alpha1.PlatformThreads] = threads.New(threads.Config{Config: platforms.Config{APIURL: platform.URL + "/threads"}}, transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
		})
	})

	It("are stored with the end of the lookup, without those of other posts, until the answer", func(ctx SpecContext) {
		t := newTeam(ctx)
		posted(ctx, t.post(ctx, "another one of Herald"))
		twin := t.byHand(ctx, "twin  words") // with two spaces X accepts both, and a lookup finds both
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		p := t.post(ctx, "twin words")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))

		target := read(ctx, p).Status.Targets[0]
		Expect(target.Candidates).To(HaveLen(2))
		Expect(target.Candidates[1].ExternalID).To(Equal(twin), "the newest comes first")
		own := target.Candidates[0]
		Expect(own.Text).To(Equal("twin words"))
		Expect(own.PostedAt).NotTo(BeNil())
		Expect(own.ExternalURL).To(ContainSubstring("/status/" + own.ExternalID))

		settle(ctx, p, "0=posted:"+own.ExternalURL+"?s=20")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		target = read(ctx, p).Status.Targets[0]
		Expect(target.ExternalID).To(Equal(own.ExternalID))
		Expect(target.ExternalURL).To(Equal(own.ExternalURL))
		Expect(target.PostedAt.Time).To(BeTemporally("==", own.PostedAt.Time))
		Expect(target.Unconfirmed).To(BeFalse(), "X says whose it is")
		Expect(target.Candidates).To(BeEmpty())
		Expect(publishesBy(t.account)).To(Equal(3), "the one by hand among them")
	})

	It("are listed again on request", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "in doubt", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		lookAgain(ctx, p)
		Expect(offered(ctx, p)).To(BeEmpty(), "the account has published nothing")
		id := t.byHand(ctx, "in doubt")
		lookAgain(ctx, p)
		Expect(offered(ctx, p)).To(Equal([]string{id}))
		By("the platform being away")
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 100})
		lookAgain(ctx, p)
		Expect(offered(ctx, p)).To(Equal([]string{id}), "what was listed stays")
		settle(ctx, p, "0=posted:"+id)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, p).Status.Targets[0].ExternalURL).To(ContainSubstring("/status/"+id), "the list has the address")
	})

	It("need not be listed for a post that nobody doubts", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "waits", at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		lookAgain(ctx, p)
		Expect(offered(ctx, p)).To(BeEmpty())
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled))
	})

	It("need not have it: that it is published suffices", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "seen by somebody", restored)
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		settle(ctx, p, "0=posted")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		now := read(ctx, p)
		Expect(now.Status.Targets[0].ExternalID + now.Status.Targets[0].ExternalURL).To(BeEmpty())
		Expect(now.Status.Targets[0].Unconfirmed).To(BeTrue())
		Expect(now.Status.Finished).To(BeTrue())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("tell the id of an address that has a code in its place", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.connectTo(ctx, v1alpha1.PlatformThreads, "threads", fmt.Sprintf("17%08d", serial.Add(1)), map[string]any{"processing_ms": 0, "listing_lag_ms": 0})
		p := t.post(ctx, "on Threads", restored, func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "threads" })
		Eventually(question(ctx, p)).ShouldNot(BeEmpty())
		const form = "application/x-www-form-urlencoded"
		container := published(ctx, account, "/threads/v1.0/"+account.ID+"/threads", form, url.Values{"media_type": {"TEXT"}, "text": {"on Threads"}}.Encode())
		id := published(ctx, account, "/threads/v1.0/"+account.ID+"/threads_publish", form, url.Values{"creation_id": {container}}.Encode())
		posts := suite.Must(platform.Posts(ctx, "threads", account.ID))
		Expect(posts).To(HaveLen(1))

		By("an address that no post of the account has")
		settle(ctx, p, "0=posted:https://www.threads.com/@acme/post/NoSuchPost1")
		Eventually(saidWrong(ctx, p)).Should(ContainSubstring("the account's latest posts have no such address"))
		Expect(readyReason(ctx, p)).To(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(read(ctx, p).Status.Targets[0].AnswerProblem).To(ContainSubstring("no such address"))

		By("that of the post")
		settle(ctx, p, "0=posted:"+posts[0].URL)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.ExternalID).To(Equal(id))
		Expect(target.ExternalURL).To(Equal(posts[0].URL))
		Expect(target.AnswerProblem).To(BeEmpty())
	})
})
