// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/suite"
)

// received returns the content of a file that a platform received.
func received(ctx context.Context, hash string) []byte {
	GinkgoHelper()
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodGet, platform.URL+"/_media/"+hash, http.NoBody))
	response := suite.Must(http.DefaultClient.Do(request))
	defer func() { _ = response.Body.Close() }()
	return suite.Must(io.ReadAll(response.Body))
}

var _ = Describe("A video that its platform does not take", func() {
	// begin starts a manager with the teams' setting, and with a converter or the reason there is none.
	begin := func(convert bool, films post.Conversions, unconverted string) {
		runManager(func(o *post.Options) {
			o.TeamMedia = func(context.Context, string) (v1alpha1.TeamMedia, error) {
				return v1alpha1.TeamMedia{Convert: convert}, nil
			}
			o.Conversions, o.Unconverted = films, unconverted
		})
	}
	// show creates a post to X with a film of 3840 × 2160 pixels.
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
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}}
		})
	}

	It("is refused with its size, unless the team has videos converted", func(ctx SpecContext) {
		begin(false, nil, "")
		t := newTeam(ctx)
		p := show(ctx, t)
		Eventually(messageOf(ctx, p)).Should(ContainSubstring("has 3840 × 2160 pixels; x takes at most 1920 on each side"))
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("is converted if the team wants it", func(ctx SpecContext) {
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
