// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// file uploads a sample file for a team and returns its hash.
func file(ctx context.Context, t team, name, sample string, mimeType v1alpha1.MimeType) string {
	GinkgoHelper()
	data := suite.Must(os.ReadFile(filepath.Join("..", "..", "internal", "media", "probe", "testdata", sample)))
	return fileOf(ctx, t, name, sample, mimeType, data)
}

// fileOf uploads a file for a team and returns its hash.
func fileOf(ctx context.Context, t team, name, sample string, mimeType v1alpha1.MimeType, data []byte) string {
	GinkgoHelper()
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Spec:       v1alpha1.MediaSpec{FileName: sample, MimeType: mimeType, SizeBytes: int64(len(data))},
	}
	Expect(k8s.Create(ctx, media)).To(Succeed())
	object := suite.Must(bucket.Put(ctx, store.Key(media), string(mimeType), int64(len(data)), bytes.NewReader(data)))
	media.Status = v1alpha1.MediaStatus{
		Phase: v1alpha1.MediaUploaded, SizeBytes: object.Size, ETag: object.ETag, Width: 64, Height: 48,
	}
	// Some specs upload files that fail the verification.
	if facts, err := probe.Probe(bytes.NewReader(data), int64(len(data)), string(mimeType)); err == nil {
		media.Status.Width, media.Status.Height, media.Status.DurationMillis = facts.Width, facts.Height, facts.Duration.Milliseconds()
	}
	Expect(k8s.Status().Update(ctx, media)).To(Succeed())
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var _ = Describe("A post with files", Ordered, func() {
	var m *manager
	BeforeAll(func() { m = startManager() })
	AfterAll(func() { m.stop() })

	shown := func(ctx context.Context, t team) (posts [][]string) {
		GinkgoHelper()
		published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		for _, p := range published {
			var hashes []string
			for _, m := range p.Media {
				hashes = append(hashes, m.SHA256)
			}
			posts = append(posts, hashes)
		}
		return posts
	}

	It("publishes its images in order", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg, png := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG), file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		p := t.post(ctx, "look", showing("b"), func(p *v1alpha1.Post) {
			p.Spec.Image.MediaRefs = append(p.Spec.Image.MediaRefs, v1alpha1.MediaReference{Name: "a"})
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{png, jpeg}}))
	})

	It("publishes its video", func(ctx SpecContext) {
		t := newTeam(ctx)
		video := file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{video}}))
	})

	It("publishes the files of each card of a tree", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg, video := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG), file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		p := t.post(ctx, "", ofTree, func(p *v1alpha1.Post) {
			p.Spec.Tree.Cards[0].MediaRefs = []v1alpha1.MediaReference{{Name: "film"}}
			p.Spec.Tree.Cards[1].MediaRefs = []v1alpha1.MediaReference{{Name: "a"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{video}, {jpeg}}))
	})

	DescribeTable("is published once", func(ctx SpecContext, operation string) {
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: operation, Kind: "drop_after"})
		posted(ctx, t.post(ctx, "look", showing("a")))
		Expect(shown(ctx, t)).To(Equal([][]string{{jpeg}}))
	},
		Entry("if the response is lost, after which a lookup finds it", "publish"),
		Entry("if an upload fails, which is retried", "upload"),
	)

	It("does not publish a file that was overwritten after its verification", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		media := &v1alpha1.Media{}
		media.Namespace, media.Name = t.namespace, "a"
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(media), media)).To(Succeed())
		Expect(bucket.Put(ctx, store.Key(media), "image/jpeg", 5, bytes.NewReader([]byte("other")))).Error().NotTo(HaveOccurred())
		p := t.post(ctx, "look", showing("a"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring(`"picture.jpg" is no longer the one that was checked`))
		Expect(shown(ctx, t)).To(BeEmpty())
	})
})

// received returns the content of a file that a platform received.
func received(ctx context.Context, hash string) []byte {
	GinkgoHelper()
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodGet, platform.URL+"/_media/"+hash, http.NoBody))
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	return suite.Must(io.ReadAll(response.Body))
}

var _ = Describe("A video that its platform does not accept", func() {
	// begin starts a manager with the teams' setting, and with a converter or the reason there is none.
	begin := func(convert bool, films post.Conversions, unconverted string) {
		runManager(func(o *post.Options) {
			o.TeamMedia = func(context.Context, string) (v1alpha1.TeamMedia, error) {
				return v1alpha1.TeamMedia{Convert: convert}, nil
			}
			o.Conversions, o.Unconverted = films, unconverted
		})
	}
	// show creates a post to X with a 3840 × 2160 video.
	show := func(ctx context.Context, t team) *v1alpha1.Post {
		GinkgoHelper()
		program, err := exec.LookPath("ffmpeg")
		if err != nil {
			Skip("this spec needs ffmpeg in PATH; install it (apt-get install ffmpeg)")
		}
		path := filepath.Join(GinkgoT().TempDir(), "film.mp4")
		out, err := exec.CommandContext(ctx, program, "-v", "error", "-f", "lavfi", "-i", "color=s=3840x2160:r=30:d=1", "-c:v", "libx264", "-preset", "ultrafast", path).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		data := suite.Must(os.ReadFile(path))
		fileOf(ctx, t, "film", "film.mp4", v1alpha1.MimeMP4, data)
		return t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
		})
	}

	It("is rejected with its size, unless the team has videos converted", func(ctx SpecContext) {
		begin(false, nil, "")
		t := newTeam(ctx)
		p := show(ctx, t)
		Eventually(messageOf(ctx, p)).Should(ContainSubstring("has 3840 × 2160 pixels; x accepts at most 1920 on each side"))
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("is converted if the team enables it", func(ctx SpecContext) {
		path, _ := exec.LookPath("ffmpeg") // without it, the spec is skipped below
		begin(true, rendition.NewTranscoder(bucket, rendition.FFmpegConverter{Path: path}, rendition.NewSlots(1)), "")
		t := newTeam(ctx)
		p := show(ctx, t)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		arrived := received(ctx, posts[0].Media[0].SHA256)
		facts := suite.Must(probe.Probe(bytes.NewReader(arrived), int64(len(arrived)), "video/mp4"))
		Expect(facts).To(SatisfyAll(HaveField("Width", int32(1920)), HaveField("Height", int32(1080)), HaveField("VideoCodec", "h264")))
	})

	It("fails with the reason if this installation cannot convert it", func(ctx SpecContext) {
		begin(true, nil, "its manager has no ffmpeg")
		t := newTeam(ctx)
		p := show(ctx, t)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(messageOf(ctx, p)()).To(ContainSubstring("its manager has no ffmpeg"))
		Expect(t.published(ctx)).To(BeEmpty())
	})
})

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
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(500))}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		return warned(ctx, t.namespace, p.Name, v1alpha1.ReasonThumbnailNotSet)
	}
	// pictures returns the files in the store that are derived from the video.
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
	It("is created once, and set on each of its videos", func(ctx SpecContext) {
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

	DescribeTable("is reported as missing", func(ctx SpecContext, program, words string) {
		begin(program)
		t := channel(ctx)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		Eventually(publish(ctx, t, "without")).Should(ConsistOf(ContainSubstring(words)))
		Expect(pictures(ctx, t)).To(BeEmpty())
	},
		Entry("without ffmpeg", "", "thumbnails.ffmpeg"),
		Entry("if it cannot be created", "/nowhere/ffmpeg", "cannot be started"),
	)
})
