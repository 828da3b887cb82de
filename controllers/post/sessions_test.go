// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

// bySession is a variant of X whose upload URL grants access. It records the secrets that it receives.
type bySession struct {
	fast
	// words is the text of the spec's post. Other specs' unfinished posts are ignored.
	words string

	mu       sync.Mutex
	prepared []string
	sent     []string
	looked   []string
}

const authority = "https://upload.invalid/?signature="

func (b *bySession) Capabilities() platforms.Capabilities {
	limits := b.fast.Capabilities()
	limits.SecretUploads = true
	return limits
}

func (b *bySession) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if job.Content.Text == b.words {
		b.record(&b.prepared, job.Secret)
	}
	checkpoint, err := b.fast.Prepare(ctx, job)
	if err == nil {
		err = job.SaveCheckpoint(ctx, checkpoint, authority+checkpoint)
	}
	return checkpoint, err
}

func (b *bySession) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	b.recordUploaded(&b.sent, job)
	return b.fast.Publish(ctx, job)
}

func (b *bySession) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	b.recordUploaded(&b.looked, job)
	return b.fast.Lookup(ctx, job)
}

func (b *bySession) recordUploaded(list *[]string, job platforms.Job) {
	if job.Checkpoint != "" && job.Content.Text == b.words {
		b.record(list, job.Secret)
	}
}

func (b *bySession) record(list *[]string, secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*list = append(*list, secret)
}

func (b *bySession) of(list *[]string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, *list...)
}

// uploadsOf returns the Secret for a post's uploads, or nil if there is none.
func uploadsOf(ctx context.Context, p *v1alpha1.Post) *corev1.Secret {
	var secret corev1.Secret
	err := k8s.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: "herald-uploads-" + string(p.UID)}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return &secret
}

var _ = Describe("An upload session's secret", Ordered, func() {
	var (
		m     *manager
		b     *bySession
		words string
	)
	start := func() {
		m = startManager(func(o *post.Options) {
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			b = &bySession{fast: inner, words: words}
			o.Platforms[v1alpha1.PlatformX] = b
		})
	}
	BeforeEach(func() {
		words = fmt.Sprintf("by session %d", serial.Add(1))
		start()
	})
	AfterEach(func() { m.stop() })
	// scheduled creates a post with a file and waits until it is prepared.
	scheduled := func(ctx context.Context, t team) *v1alpha1.Post {
		GinkgoHelper()
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, words, showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		return p
	}
	isDue := func(ctx context.Context, p *v1alpha1.Post) {
		GinkgoHelper()
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now()) })
	}

	It("is stored only in the post's Secret, and deleted when the post is finished", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := scheduled(ctx, t)
		secret := uploadsOf(ctx, p)
		Expect(secret).NotTo(BeNil())
		Expect(secret.OwnerReferences).To(HaveLen(1))
		Expect(secret.OwnerReferences[0].UID).To(Equal(p.UID))
		Expect(string(secret.Data["0"])).To(ContainSubstring(authority))
		object, err := json.Marshal(read(ctx, p))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(object)).NotTo(ContainSubstring("signature"))
		isDue(ctx, p)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(b.of(&b.sent)).To(HaveExactElements(HavePrefix(authority)))
		Eventually(func() *corev1.Secret { return uploadsOf(ctx, p) }).Should(BeNil())
	})

	It("is deleted when the post is cancelled", func(ctx SpecContext) {
		p := scheduled(ctx, newTeam(ctx))
		Expect(cancelPost(ctx, read(ctx, p))).To(Succeed())
		Eventually(func() *corev1.Secret { return uploadsOf(ctx, p) }).Should(BeNil())
	})

	It("is available for the call after a restart", func(ctx SpecContext) {
		p := scheduled(ctx, newTeam(ctx))
		m.stop()
		start()
		isDue(ctx, p)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(b.of(&b.prepared)).To(BeEmpty(), "no session is created")
		Expect(b.of(&b.sent)).To(HaveExactElements(HavePrefix(authority)))
	})

	It("is available after a restart, for the lookup of a call whose response was lost", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := scheduled(ctx, t)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 2})
		isDue(ctx, p)
		Eventually(func() []string { return b.of(&b.looked) }).ShouldNot(BeEmpty())
		m.stop()
		start()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(b.of(&b.looked)).To(HaveEach(HavePrefix(authority)))
		Expect(b.of(&b.looked)).NotTo(BeEmpty())
	})

	It("is passed to the preparation that continues the upload", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := scheduled(ctx, t)
		m.stop()
		now := read(ctx, p)
		now.Status.Targets[0].Prepared.Complete = false
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		start()
		Eventually(func() []string { return b.of(&b.prepared) }).Should(HaveExactElements(HavePrefix(authority)))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
	})

	It("is not read from a Secret with other content", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := scheduled(ctx, t)
		file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Image.MediaRefs[0].Name = "b" })
		Eventually(func() []string { return b.of(&b.prepared) }).Should(Equal([]string{"", ""}))
	})

	// planted writes another URL into the Secret, as any user with write access to Secrets in the team's namespace can.
	planted := func(ctx context.Context, p *v1alpha1.Post) {
		GinkgoHelper()
		secret := uploadsOf(ctx, p)
		Expect(secret).NotTo(BeNil())
		secret.Data["0"] = []byte(strings.ReplaceAll(string(secret.Data["0"]), authority, "https://inside.invalid/?signature="))
		Expect(k8s.Update(ctx, secret)).To(Succeed())
	}

	It("is not read from a Secret that someone else changed", func(ctx SpecContext) {
		p := scheduled(ctx, newTeam(ctx))
		m.stop()
		planted(ctx, p)
		start()
		isDue(ctx, p)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(b.of(&b.prepared)).To(Equal([]string{""}), "a new session is created")
		Expect(b.of(&b.sent)).To(HaveExactElements(HavePrefix(authority)))
	})

	It("is not read from a Secret that someone else changed while a call may have been made", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := scheduled(ctx, t)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		t.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 2})
		isDue(ctx, p)
		Eventually(func() []string { return b.of(&b.looked) }).ShouldNot(BeEmpty())
		m.stop()
		planted(ctx, p)
		start()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(b.of(&b.looked)).To(And(Not(BeEmpty()), HaveEach("")))
		Expect(b.of(&b.sent)).To(BeEmpty(), "no call is made again")
		Expect(publishesBy(t.account)).To(Equal(1))
	})

	It("is stored as soon as it exists", func(ctx SpecContext) {
		p := scheduled(ctx, newTeam(ctx))
		prepared := read(ctx, p).Status.Targets[0].Prepared
		Expect(prepared.Secret).To(BeTrue())
		Expect(prepared.SecretHash).To(MatchRegexp("^[0-9a-f]{64}$"))
	})
})
