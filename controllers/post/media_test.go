// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
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

	It("shows its images in their order", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg, png := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG), file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		p := t.post(ctx, "look", showing("b"), func(p *v1alpha1.Post) {
			p.Spec.Image.MediaRefs = append(p.Spec.Image.MediaRefs, v1alpha1.LocalReference{Name: "a"})
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{png, jpeg}}))
	})

	It("shows its video", func(ctx SpecContext) {
		t := newTeam(ctx)
		video := file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{video}}))
	})

	It("shows the files of each card of a tree", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg, video := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG), file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		p := t.post(ctx, "", ofTree, func(p *v1alpha1.Post) {
			p.Spec.Tree.Cards[0].MediaRefs = []v1alpha1.LocalReference{{Name: "film"}}
			p.Spec.Tree.Cards[1].MediaRefs = []v1alpha1.LocalReference{{Name: "a"}}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(shown(ctx, t)).To(Equal([][]string{{video}, {jpeg}}))
	})

	It("is found after a lost answer, and not published twice", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		posted(ctx, t.post(ctx, "look", showing("a")))
		Expect(shown(ctx, t)).To(Equal([][]string{{jpeg}}))
	})

	It("is tried again when an upload fails", func(ctx SpecContext) {
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "drop_after"})
		posted(ctx, t.post(ctx, "look", showing("a")))
		Expect(shown(ctx, t)).To(Equal([][]string{{jpeg}}))
	})

	It("does not show a file that was overwritten after it had been checked", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		media := &v1alpha1.Media{}
		media.Namespace, media.Name = t.namespace, "a"
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(media), media)).To(Succeed())
		Expect(bucket.Put(ctx, store.Key(media), "image/jpeg", 5, bytes.NewReader([]byte("other")))).Error().NotTo(HaveOccurred())
		p := t.post(ctx, "look", showing("a"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring(`"picture.jpg" is not the one that was checked`))
		Expect(shown(ctx, t)).To(BeEmpty())
	})
})
