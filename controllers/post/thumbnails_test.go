// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/youtube"
)

// takes counts the pictures that are extracted from videos.
type takes struct {
	rendition.Extractor

	count atomic.Int64
}

func (t *takes) Extract(ctx context.Context, video rendition.VideoSource, at time.Duration) (rendition.Picture, error) {
	t.count.Add(1)
	return t.Extractor.Extract(ctx, video, at)
}

var _ = Describe("The thumbnail of a video on YouTube", Ordered, func() {
	var m *manager
	AfterEach(func() { m.stop() })

	// begin starts a manager that extracts pictures with the given program; an empty path disables thumbnails.
	begin := func(path string) *takes {
		taken := &takes{Extractor: rendition.FrameExtractor{Path: path}}
		m = startManager(func(o *post.Options) {
			o.Platforms[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{APIURL: platform.URL + "/youtube", WebURL: platform.URL + "/youtube"},
				transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
			if path != "" {
				o.Thumbnails = rendition.NewThumbnailer(bucket, taken, rendition.NewSlots(1))
			}
		})
		return taken
	}
	channel := func(ctx context.Context) team {
		GinkgoHelper()
		t := newTeam(ctx)
		t.account = t.connectTo(ctx, v1alpha1.PlatformYouTube, "youtube", fmt.Sprintf("UC%022d", serial.Add(1)), nil)
		return t
	}
	// publish returns a function that reads the warnings about the published post.
	publish := func(ctx context.Context, t team, title string) func() []string {
		GinkgoHelper()
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Targets[0].ConnectionRef.Name = "youtube"
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: title}
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(500))}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		return warned(ctx, t.namespace, p.Name, v1alpha1.ReasonThumbnailNotSet)
	}
	// pictures returns the files in the store that are derived from the film.
	pictures := func(ctx context.Context, t team) (found []store.Object) {
		GinkgoHelper()
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "film"}, &media)).To(Succeed())
		for object, err := range bucket.List(ctx, store.Derived(store.Key(&media), "")) {
			Expect(err).NotTo(HaveOccurred())
			found = append(found, object)
		}
		return found
	}
	It("is made once, and set on each video of it", func(ctx SpecContext) {
		path, err := exec.LookPath("ffmpeg")
		if err != nil {
			Skip("this spec needs ffmpeg in PATH; install it (apt-get install ffmpeg)")
		}
		taken := begin(path)
		t := channel(ctx)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		before := arrivals.of(thumbnailsSet)
		publish(ctx, t, "first")
		Expect(pictures(ctx, t)).To(HaveLen(1))
		Expect(arrivals.of(thumbnailsSet) - before).To(Equal(1))
		told := publish(ctx, t, "second")
		Expect(arrivals.of(thumbnailsSet) - before).To(Equal(2))
		Expect(pictures(ctx, t)).To(HaveLen(1))
		Expect(taken.count.Load()).To(BeEquivalentTo(1))
		Expect(told()).To(BeEmpty())
	})

	DescribeTable("is told to be missing", func(ctx SpecContext, program, words string) {
		begin(program)
		t := channel(ctx)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		Eventually(publish(ctx, t, "without")).Should(ConsistOf(ContainSubstring(words)))
		Expect(pictures(ctx, t)).To(BeEmpty())
	},
		Entry("without ffmpeg", "", "thumbnails.ffmpeg"),
		Entry("if none can be made", "/nowhere/ffmpeg", "cannot be started"),
	)
})
