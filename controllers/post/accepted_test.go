// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/sandboxtest"
)

// working is a variant of X that accepts a call with only an operation id and processes the post afterwards.
type working struct {
	fast
	*work
}

// work controls the processing.
type work struct {
	// done ends the processing. If loses is set, calls are lost before they arrive. If blocks is set, preparations fail
	// permanently.
	done, loses, blocks, asked atomic.Bool
	refused                    *platforms.Error
}

func (w working) Prepares(platforms.Content) bool { return true }

func (w working) Prepare(_ context.Context, job platforms.Job) (string, *platforms.Error) {
	if w.blocks.Load() {
		return "", platforms.Errorf(platforms.ClassPermanent, "the account may not show this")
	}
	return job.Checkpoint, nil
}

func (w working) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if w.loses.Load() {
		return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "the connection broke")}
	}
	result := w.fast.Publish(ctx, job)
	if result.Outcome != platforms.Posted {
		return result
	}
	return platforms.Result{Outcome: platforms.Accepted, OperationID: "ticket~" + result.ExternalID}
}

func (w working) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	w.asked.Store(true)
	id, known := strings.CutPrefix(job.OperationID, "ticket~")
	switch {
	case !known && w.loses.Load():
		return w.fast.Lookup(ctx, job)
	case !known:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassPermanent, "nobody knows the post without its ticket")
	case !w.done.Load():
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, "it is being processed")
	case w.refused != nil:
		return platforms.LookupResult{Refused: w.refused}, nil //nolint:nilerr // the lookup itself succeeds
	}
	return platforms.LookupResult{Matches: 1, ExternalID: id, ExternalURL: "https://x.example/" + id, Certain: true}, nil
}

// says reports whether a post has the given text. A manager also delivers posts that other specs have left behind.
func says(post client.Object, text string) bool {
	return post.(*v1alpha1.Post).Spec.Targets[0].Caption == text
}

var _ = Describe("A call that the platform accepted and is still processing", func() {
	var (
		m *manager
		w *work
	)
	disturbed := func(refused *platforms.Error, writes interceptor.Funcs) {
		w = &work{refused: refused}
		m = startDisturbed(writes, func(o *post.Options) {
			o.RecordFor = time.Second
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			o.Platforms[v1alpha1.PlatformX] = working{inner, w}
		})
	}
	start := func(refused *platforms.Error) { disturbed(refused, interceptor.Funcs{}) }
	AfterEach(func() { m.stop() })
	target := func(ctx context.Context, p *v1alpha1.Post) v1alpha1.TargetStatus {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
			return targets[0]
		}
		return v1alpha1.TargetStatus{}
	}

	It("is looked up by its operation id, also after a restart, and sent once", func(ctx SpecContext) {
		start(nil)
		t := newTeam(ctx)
		p := t.post(ctx, "taken")
		Eventually(messageOf(ctx, p)).Should(Equal("it is being processed"))
		Expect(target(ctx, p).Reason).To(Equal(v1alpha1.ReasonProcessing), "the response was received")
		Expect(target(ctx, p).Attempt.OperationID).To(HavePrefix("ticket~"))

		m.stop()
		start(nil)
		Eventually(w.asked.Load).Should(BeTrue())
		Expect(target(ctx, p).Phase).To(Equal(v1alpha1.PhaseProcessing))
		w.done.Store(true)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"taken"}))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ConsistOf(HavePrefix("Posted: target 0: published to x as https://x.example/")),
			"an ordinary delivery emits no warning")
	})

	It("is not claimed by another post with the same text whose response was lost", func(ctx SpecContext) {
		start(nil)
		t := newTeam(ctx)
		first := t.post(ctx, "said twice")
		Eventually(messageOf(ctx, first)).Should(Equal("it is being processed"))
		w.loses.Store(true)
		second := t.post(ctx, "said twice")
		Eventually(messageOf(ctx, second)).Should(ContainSubstring("another post with the same text"))
		w.done.Store(true)
		Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
		w.loses.Store(false)
		Expect(target(ctx, second).ExternalID).To(BeEmpty())
		Expect(t.published(ctx)).To(Equal([]string{"said twice"}))
	})

	It("fails with the platform's reason if processing fails", func(ctx SpecContext) {
		start(platforms.Errorf(platforms.ClassPermanent, "the picture is too large"))
		w.done.Store(true)
		p := newTeam(ctx).post(ctx, "given up")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p).Message).To(ContainSubstring("the picture is too large"))
	})

	It("is looked up by its operation id even if the API server rejects the status that reports it", func(ctx SpecContext) {
		var writes atomic.Int32
		disturbed(nil, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if says(obj, "named alone") && writes.Add(1) == 2 { // the first is the claim
				return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Post"}, obj.GetName(), nil)
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}})
		w.done.Store(true)
		p := posted(ctx, newTeam(ctx).post(ctx, "named alone"))
		Expect(target(ctx, p).Attempt.OperationID).To(HavePrefix("ticket~"))
	})

	It("is looked up by its operation id if that is recorded after the outcome became unknown", func(ctx SpecContext) {
		var held atomic.Bool
		var writes atomic.Int32
		disturbed(nil, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if says(obj, "told late") && writes.Add(1) > 1 && held.Load() {
				return apierrors.NewInternalError(context.DeadlineExceeded)
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		}})
		held.Store(true)
		t := newTeam(ctx)
		p := t.post(ctx, "told late")
		Eventually(func() []string { return t.published(ctx) }).Should(HaveLen(1))
		// In the meantime, another manager stops the lookups, because it has no operation id.
		now := read(ctx, p)
		now.Status.Targets[0].State, now.Status.Targets[0].Attempt.Outcome = v1alpha1.TargetUndecided, v1alpha1.OutcomeUnknown
		now.Status.Targets[0].Phase, now.Status.Targets[0].Reason = v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		// The next reconciliation records the result from memory.
		Eventually(writes.Load).Should(BeNumerically(">", 6))
		held.Store(false)
		w.done.Store(true)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).Attempt.OperationID).To(HavePrefix("ticket~"))
		Expect(t.published(ctx)).To(Equal([]string{"told late"}))
	})

	It("marks the connection as not ready if processing failed because of it", func(ctx SpecContext) {
		start(platforms.Errorf(platforms.ClassReconnect, "the permission was withdrawn"))
		w.done.Store(true)
		t := newTeam(ctx)
		t.post(ctx, "withdrawn")
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(ContainSubstring("the permission was withdrawn"))
	})

	It("emits a warning if processing failed and the platform does not accept the post again", func(ctx SpecContext) {
		start(platforms.Errorf(platforms.ClassTransient, "the platform had trouble"))
		t := newTeam(ctx)
		p := t.post(ctx, "made once")
		Eventually(messageOf(ctx, p)).Should(Equal("it is being processed"))
		w.blocks.Store(true)
		w.done.Store(true)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement("Refused: target 0 (x): the account may not show this"))
	})
})

var _ = Describe("A video that YouTube processes after the upload", func() {
	var m *manager
	AfterEach(func() { m.stop() })

	// ffmpeg is the path of the program that extracts pictures from videos, or empty if it is not installed.
	ffmpeg, _ := exec.LookPath("ffmpeg")
	begin := func() {
		m = startManager(func(o *post.Options) {
			o.Platforms[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{APIURL: platform.URL + "/youtube", WebURL: platform.URL + "/youtube"},
				transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
			if ffmpeg != "" {
				o.Thumbnails = rendition.NewThumbnailer(bucket, rendition.FrameExtractor{Path: ffmpeg}, rendition.NewSlots(1))
			}
		})
	}
	channel := func(ctx context.Context, settings map[string]any) team {
		GinkgoHelper()
		t := newTeam(ctx)
		t.account = t.connectTo(ctx, v1alpha1.PlatformYouTube, "youtube", fmt.Sprintf("UC%022d", serial.Add(1)), settings)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		return t
	}
	publish := func(ctx context.Context, t team) *v1alpha1.Post {
		GinkgoHelper()
		return t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Targets[0].ConnectionRef.Name = "youtube"
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "a title"}
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(500))}
		})
	}
	target := func(ctx context.Context, p *v1alpha1.Post) v1alpha1.TargetStatus {
		if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
			return targets[0]
		}
		return v1alpha1.TargetStatus{}
	}
	// videos returns the videos on the channel.
	videos := func(ctx context.Context, t team) []sandboxtest.Post {
		GinkgoHelper()
		posts, err := platform.Posts(ctx, "youtube", t.account.ID)
		Expect(err).NotTo(HaveOccurred())
		return posts
	}
	operation := func(ctx context.Context, p *v1alpha1.Post) func() string {
		return func() string {
			if a := target(ctx, p).Attempt; a != nil {
				return a.OperationID
			}
			return ""
		}
	}

	It("is posted once it is public, also after a restart, and then gets its thumbnail", func(ctx SpecContext) {
		begin()
		before := arrivals.of(thumbnailsSet)
		t := channel(ctx, map[string]any{"processing_ms": 6000})
		p := publish(ctx, t)
		Eventually(operation(ctx, p)).ShouldNot(BeEmpty())
		Expect(target(ctx, p).Phase).To(Equal(v1alpha1.PhaseProcessing))
		Expect(target(ctx, p).Message).To(ContainSubstring("is processing it"))
		Expect(arrivals.of(thumbnailsSet)).To(Equal(before))
		m.stop()
		begin()
		Eventually(phase(ctx, p), 30*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).ExternalID).To(Equal(operation(ctx, p)()))
		Expect(videos(ctx, t)).To(HaveLen(1))
		if ffmpeg != "" {
			Expect(arrivals.of(thumbnailsSet) - before).To(Equal(1))
		}
	})

	It("is looked up by its id even if the response to the upload was lost", func(ctx SpecContext) {
		begin()
		t := channel(ctx, map[string]any{"processing_ms": 6000})
		Expect(platform.Fault(ctx, sandboxtest.Fault{Platform: "youtube", Account: t.account.ID, Operation: "publish", Kind: "drop_after", Times: 1})).To(Succeed())
		p := publish(ctx, t)
		Eventually(operation(ctx, p), 10*time.Second).ShouldNot(BeEmpty())
		Eventually(phase(ctx, p), 30*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Expect(target(ctx, p).ExternalID).To(Equal(operation(ctx, p)()))
		Expect(videos(ctx, t)).To(HaveLen(1))
	})

	It("fails with YouTube's reason if YouTube rejects it", func(ctx SpecContext) {
		begin()
		t := channel(ctx, map[string]any{"processing_ms": 1500, "processing_error": "duplicate"})
		p := publish(ctx, t)
		Eventually(operation(ctx, p)).ShouldNot(BeEmpty())
		Eventually(phase(ctx, p), 30*time.Second).Should(Equal(v1alpha1.PhaseFailed))
		Expect(target(ctx, p).Reason).To(Equal(v1alpha1.ReasonRefused))
		Expect(target(ctx, p).Message).To(ContainSubstring("the channel already has the same video"))
		Expect(target(ctx, p).Attempt.OperationID).NotTo(BeEmpty(), "the owner can check the video")
		Expect(videos(ctx, t)).To(HaveLen(1), "the post is not published again")
	})
})
