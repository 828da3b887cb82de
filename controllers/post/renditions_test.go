// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// narrow is a variant of X with Instagram's limits for images and YouTube's use of thumbnails.
type narrow struct{ fast }

func (n narrow) Capabilities() platforms.Capabilities {
	limits := n.fast.Capabilities()
	limits.Images = platforms.ImageLimits{
		Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}, MaxBytes: 8 << 20, MinAspect: 0.8, MaxAspect: 1.91,
	}
	limits.TakesThumbnail = true
	return limits
}

// direct is a platform that receives files with the publishing call and needs no preparation.
type direct struct {
	platforms.Publisher

	uploads platforms.Preparer
}

func (d direct) Capabilities() platforms.Capabilities {
	limits := d.Publisher.Capabilities()
	limits.PreparedTTL = 0
	return limits
}

func (d direct) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	checkpoint, err := d.uploads.Prepare(ctx, job)
	if err != nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: err}
	}
	job.Checkpoint = checkpoint
	return d.Publisher.Publish(ctx, job)
}

// countingStore counts the renditions that are written to the store.
type countingStore struct {
	*store.Store

	puts atomic.Int64
}

func (c *countingStore) PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (store.Object, error) {
	c.puts.Add(1)
	return c.Store.PutTagged(ctx, key, mimeType, size, body, tags)
}

var _ = Describe("Images that a platform does not accept", Ordered, func() {
	var made countingStore
	var m *manager
	begin := func(change ...func(*post.Options)) {
		m = startManager(append([]func(*post.Options){func(o *post.Options) {
			p, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms[v1alpha1.PlatformX] = narrow{p}
			o.Renditions = rendition.NewRenderer(&made)
		}}, change...)...)
	}
	BeforeAll(func() {
		made.Store = bucket
		begin()
	})
	AfterAll(func() { m.stop() })

	type sent struct{ hash, mimeType string }
	shown := func(ctx context.Context, t team) (posts [][]sent) {
		GinkgoHelper()
		published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		for _, p := range published {
			var files []sent
			for _, m := range p.Media {
				files = append(files, sent{m.SHA256, m.MIMEType})
			}
			posts = append(posts, files)
		}
		return posts
	}
	// renditions returns the files in the store that are derived from a Media.
	renditions := func(ctx context.Context, t team, name string) map[string]store.Object {
		GinkgoHelper()
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &media)).To(Succeed())
		found := map[string]store.Object{}
		for object, err := range bucket.List(ctx, store.Derived(store.Key(&media), "")) {
			Expect(err).NotTo(HaveOccurred())
			body, err := bucket.Open(ctx, object.Key, object.ETag, 0, object.Size)
			if errors.Is(err, store.ErrNotFound) {
				continue // a listing may show a file before it can be read
			}
			Expect(err).NotTo(HaveOccurred())
			data := suite.Must(io.ReadAll(body))
			sum := sha256.Sum256(data)
			found[hex.EncodeToString(sum[:])] = object
		}
		return found
	}
	with := func(names ...string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			showing(names[0])(p)
			for _, name := range names[1:] {
				p.Spec.Image.MediaRefs = append(p.Spec.Image.MediaRefs, v1alpha1.MediaReference{Name: name})
			}
		}
	}

	It("are published as accepted formats, next to accepted images", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		file(ctx, t, "webp", "picture.webp", v1alpha1.MimeWebP)
		jpeg := file(ctx, t, "jpeg", "picture.jpg", v1alpha1.MimeJPEG)
		posted(ctx, t.post(ctx, "look", with("png", "jpeg", "webp")))
		posts := shown(ctx, t)
		Expect(posts).To(HaveLen(1))
		Expect(posts[0]).To(HaveLen(3))
		for _, file := range posts[0] {
			Expect(file.mimeType).To(Equal("image/jpeg"))
		}
		Expect(renditions(ctx, t, "png")).To(And(HaveLen(1), HaveKey(posts[0][0].hash)))
		Expect(posts[0][1].hash).To(Equal(jpeg))
		Expect(renditions(ctx, t, "jpeg")).To(BeEmpty())
		Expect(renditions(ctx, t, "webp")).To(And(HaveLen(1), HaveKey(posts[0][2].hash)))
	})

	It("are converted once, whichever post and process needs them", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		before := made.puts.Load()
		first, second := t.post(ctx, "first", with("png")), t.post(ctx, "second", with("png", "png"))
		Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(phase(ctx, second)).Should(Equal(v1alpha1.PhasePosted))
		m.stop()
		begin()
		posted(ctx, t.post(ctx, "third", with("png")))
		Expect(shown(ctx, t)).To(HaveLen(3))
		Expect(made.puts.Load() - before).To(BeEquivalentTo(1))
	})

	It("are published once after a lost response", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		posted(ctx, t.post(ctx, "look", with("png")))
		Expect(shown(ctx, t)).To(HaveLen(1))
	})

	It("are converted before the scheduled time", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		p := t.post(ctx, "later", with("png"), at(30*time.Second))
		Eventually(func() int { return len(renditions(ctx, t, "png")) }).Should(Equal(1))
		Expect(read(ctx, p).Status.Phase).To(Equal(v1alpha1.PhaseScheduled))
	})

	It("fail a post permanently if they cannot be converted, with the reason", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "tail.mp4", v1alpha1.MimePNG)
		p := t.post(ctx, "look", with("png"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Message).To(ContainSubstring(`"tail.mp4" cannot be converted`))
		Expect(target.Attempt).To(BeNil(), "no target was claimed")
	})

	It("leave a warning if their content is not visible", func(ctx SpecContext) {
		t := newTeam(ctx)
		logo := image.NewNRGBA(image.Rect(0, 0, 64, 48))
		for x := range 32 {
			logo.Set(x, 20, color.White)
		}
		var data bytes.Buffer
		Expect(png.Encode(&data, logo)).To(Succeed())
		fileOf(ctx, t, "logo", "logo.png", v1alpha1.MimePNG, data.Bytes())
		p := posted(ctx, t.post(ctx, "look", with("logo")))
		Eventually(warned(ctx, t.namespace, p.Name, v1alpha1.ReasonPictureBlank)).
			Should(ConsistOf(ContainSubstring(`"logo.png" is blank on x`)))
	})

	It("are reported as changed if they have changed", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "png"}, &media)).To(Succeed())
		Expect(bucket.Put(ctx, store.Key(&media), "image/png", 5, bytes.NewReader([]byte("other")))).Error().NotTo(HaveOccurred())
		p := t.post(ctx, "look", with("png"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring(`"picture.png" is no longer the one that was checked`))
	})

	It("leave a warning if a moment of a video was to be the thumbnail", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(500))}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(warned(ctx, t.namespace, p.Name, v1alpha1.ReasonThumbnailNotSet)).
			Should(ContainElement(ContainSubstring("without the chosen thumbnail")))
	})

	It("are converted for a platform without a preparation step", func(ctx SpecContext) {
		m.stop()
		begin(func(o *post.Options) {
			p, ok := o.Platforms[v1alpha1.PlatformX].(narrow)
			Expect(ok).To(BeTrue())
			o.Platforms[v1alpha1.PlatformX] = direct{p, p}
		})
		t := newTeam(ctx)
		file(ctx, t, "png", "picture.png", v1alpha1.MimePNG)
		jpeg := file(ctx, t, "jpeg", "picture.jpg", v1alpha1.MimeJPEG)
		p := posted(ctx, t.post(ctx, "look", with("png", "jpeg")))
		posts := shown(ctx, t)
		Expect(posts).To(HaveLen(1))
		Expect(renditions(ctx, t, "png")).To(HaveKey(posts[0][0].hash))
		Expect(posts[0][1].hash).To(Equal(jpeg))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(1))
	})
})
