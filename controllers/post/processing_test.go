// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("A video that YouTube processes after the upload", func() {
	var m *manager
	AfterEach(func() { m.stop() })

	// ffmpeg is the program that extracts pictures from videos, or empty if it is not installed.
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
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(500))}
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

	It("is posted once people can watch it, also by the next process, and has its thumbnail then", func(ctx SpecContext) {
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

	It("is asked for by its id also if the answer to the upload was lost", func(ctx SpecContext) {
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
		Expect(target(ctx, p).Message).To(ContainSubstring("the channel has the same video already"))
		Expect(target(ctx, p).Attempt.OperationID).NotTo(BeEmpty(), "the owner can look at the video")
		Expect(videos(ctx, t)).To(HaveLen(1), "it is not sent again")
	})
})
