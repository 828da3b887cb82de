// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// sampleOf returns a sample file of the probe's tests.
func sampleOf(name string) []byte {
	GinkgoHelper()
	return suite.Must(os.ReadFile(filepath.Join("..", "..", "internal", "media", "probe", "testdata", name)))
}

// placedPhoto returns a photo whose only metadata is its location, and the same photo without it, whose metadata then
// has no entry.
func placedPhoto() (placed, cleaned []byte) {
	photo := sampleOf("picture.jpg")
	const header = "MM\x00*\x00\x00\x00\x08"
	metadata := []byte(header + "\x00\x01\x88\x25\x00\x04\x00\x00\x00\x01\x00\x00\x00\x1a\x00\x00\x00\x00" + "\x00\x01\x00\x01\x00\x02\x00\x00\x00\x02N\x00\x00\x00\x00\x00\x00\x00")
	with := func(metadata []byte) []byte {
		segment := append([]byte("\xff\xe1\x00"), byte(2+6+len(metadata)))
		segment = append(append(segment, "Exif\x00\x00"...), metadata...)
		return bytes.Join([][]byte{photo[:2], segment, photo[2:]}, nil)
	}
	return with(metadata), with(append([]byte(header), make([]byte, len(metadata)-len(header))...))
}

// placedVideo returns a video with a box of coordinates, and the same video with free space in its place.
func placedVideo() (placed, cleaned []byte) {
	const film, added = "tenseconds.mp4", 28
	data := sampleOf(film)
	at := bytes.Index(data, []byte("moov")) - 4
	end := at + int(binary.BigEndian.Uint32(data[at:]))
	with := func(box string) []byte {
		whole := bytes.Join([][]byte{data[:end], []byte("\x00\x00\x00\x1cudta\x00\x00\x00\x14" + box), data[end:]}, nil)
		grow := func(at int) { binary.BigEndian.PutUint32(whole[at:], binary.BigEndian.Uint32(whole[at:])+added) }
		grow(at)
		// The frames follow the box, so their offsets in the tables must grow by its size.
		for next := at; ; {
			table := bytes.Index(whole[next:end], []byte("stco"))
			if table < 0 {
				return whole
			}
			next += table + 12
			for i := range int(binary.BigEndian.Uint32(whole[next-4:])) {
				grow(next + 4*i)
			}
		}
	}
	return with("\xa9xyz+47.2+008.5/"), with("free" + string(make([]byte, 12)))
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var _ = Describe("A file's location metadata", Ordered, func() {
	var keeping sync.Map // the namespaces of teams that keep locations
	BeforeAll(func() {
		runManager(withThreads, func(o *post.Options) {
			o.TeamMedia = func(_ context.Context, namespace string) (v1alpha1.TeamMedia, error) {
				_, keep := keeping.Load(namespace)
				return v1alpha1.TeamMedia{KeepLocation: keep}, nil
			}
		})
	})

	filming := func(media string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: media}}
		}
	}
	// arrived returns the hashes of the files on X, which receives files, and on Threads, which fetches them.
	arrived := func(ctx context.Context, t team, onThreads sandboxtest.Account, change func(*v1alpha1.Post)) (all []string) {
		GinkgoHelper()
		posted(ctx, t.post(ctx, "look", change, toBoth))
		for name, account := range map[string]sandboxtest.Account{"x": t.account, "threads": onThreads} {
			posts := suite.Must(platform.Posts(ctx, name, account.ID))
			Expect(posts).To(HaveLen(1))
			for _, file := range posts[0].Media {
				all = append(all, file.SHA256)
			}
		}
		return all
	}
	copies := func(ctx context.Context, t team, name string) (count int) {
		GinkgoHelper()
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &media)).To(Succeed())
		for _, err := range bucket.List(ctx, store.Derived(store.Key(&media), "")) {
			Expect(err).NotTo(HaveOccurred())
			count++
		}
		return count
	}

	It("is removed from photos, which do not change otherwise", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		placed, cleaned := placedPhoto()
		fileOf(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG, placed)
		Expect(arrived(ctx, t, account, showing("a"))).To(HaveEach(hashOf(cleaned)))
		Expect(copies(ctx, t, "a")).To(Equal(1), "only the rendition without a location is in the store")
	})

	It("is removed from videos, which do not change otherwise", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		placed, cleaned := placedVideo()
		fileOf(ctx, t, "a", "film.mp4", v1alpha1.MimeMP4, placed)
		Expect(arrived(ctx, t, account, filming("a"))).To(HaveEach(hashOf(cleaned)))
	})

	It("is not required", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		hash := file(ctx, t, "a", "tenseconds.mp4", v1alpha1.MimeMP4)
		Expect(arrived(ctx, t, account, filming("a"))).To(HaveEach(hash))
		Expect(copies(ctx, t, "a")).To(Equal(1), "the rendition of the verified file")
	})

	It("is published if the team keeps it", func(ctx SpecContext) {
		t := newTeam(ctx)
		keeping.Store(t.namespace, true)
		account := t.onThreads(ctx, 0)
		placed, _ := placedPhoto()
		hash := fileOf(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG, placed)
		Expect(arrived(ctx, t, account, showing("a"))).To(HaveEach(hash))
	})

	It("fails a post whose file cannot be parsed, and explains the remedy", func(ctx SpecContext) {
		t := newTeam(ctx)
		placed, _ := placedPhoto()
		many := bytes.Repeat([]byte("\xff\xd8\xff\xd9"), 2000)
		fileOf(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG, append(placed, many...))
		p := t.post(ctx, "look", showing("a"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(And(
			ContainSubstring(`"picture.jpg" has more than 1000 pictures`), ContainSubstring("export it again"), ContainSubstring("spec.media.keepLocation")))
	})
})

// meddling is a store whose files are overwritten, through their clients' upload URLs, as soon as a URL for fetching
// one is issued.
type meddling struct {
	*store.Store

	// uploads holds the upload URLs, by key.
	uploads atomic.Pointer[map[string]string]
}

func (m *meddling) PresignGet(ctx context.Context, key string, valid time.Duration) (string, error) {
	address, err := m.Store.PresignGet(ctx, key, valid)
	if uploads := m.uploads.Load(); uploads != nil {
		for _, upload := range *uploads {
			overwrite(ctx, upload)
		}
	}
	return address, err
}

// another returns another picture. An upload URL accepts only one file size; the specs use URLs for the size of this
// picture.
func another() *bytes.Buffer {
	GinkgoHelper()
	var other bytes.Buffer
	Expect(jpeg.Encode(&other, image.NewGray(image.Rect(0, 0, 320, 320)), nil)).To(Succeed())
	return &other
}

// overwrite uploads another picture to an upload URL for JPEGs.
func overwrite(ctx context.Context, address string) {
	GinkgoHelper()
	req := suite.Must(http.NewRequestWithContext(ctx, http.MethodPut, address, another()))
	req.Header.Set("Content-Type", "image/jpeg")
	response, err := new(http.Client).Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
}

var _ = Describe("A file that its platform downloads", Ordered, func() {
	var files *meddling
	BeforeAll(func() {
		files = &meddling{Store: bucket}
		runManager(withThreads, func(o *post.Options) {
			o.Files = files
			o.Platforms[v1alpha1.PlatformTikTok] = tiktok.New(tiktok.Config{APIURL: platform.URL + "/tiktok", WebURL: platform.URL + "/tiktok"}, transport.New(transport.Options{}))
		})
	})

	// uploaded creates a picture that its client can still overwrite. It returns its hash, its key and its upload URL.
	uploaded := func(ctx context.Context, t team, name string) (hash, key, address string) {
		GinkgoHelper()
		hash = file(ctx, t, name, "picture.jpg", v1alpha1.MimeJPEG)
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: name}, &media)).To(Succeed())
		key = store.Key(&media)
		address, _, err := bucket.PresignPut(ctx, key, "image/jpeg", int64(another().Len()))
		Expect(err).NotTo(HaveOccurred())
		return hash, key, address
	}
	hashes := func(ctx context.Context, name string, account sandboxtest.Account) (all []string) {
		GinkgoHelper()
		posts := suite.Must(platform.Posts(ctx, name, account.ID))
		for _, p := range posts {
			for _, file := range p.Media {
				all = append(all, file.SHA256)
			}
		}
		return all
	}

	It("is the verified one, even if it is overwritten before the download", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		hash, key, address := uploaded(ctx, t, "a")
		files.uploads.Store(&map[string]string{key: address})
		DeferCleanup(func() { files.uploads.Store(nil) })
		posted(ctx, t.post(ctx, "look", showing("a"), toThreads))
		Expect(hashes(ctx, "threads", account)).To(Equal([]string{hash}))
	})

	It("is not downloaded after it was overwritten", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		_, _, address := uploaded(ctx, t, "a")
		overwrite(ctx, address)
		p := t.post(ctx, "look", showing("a"), toThreads)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring(`"picture.jpg" is no longer the one that was checked`))
		Expect(hashes(ctx, "threads", account)).To(BeEmpty())
	})

	Context("with the publishing call", func() {
		// onTikTok creates a TikTok account and a ready connection to it.
		onTikTok := func(ctx context.Context, t team) sandboxtest.Account {
			GinkgoHelper()
			return t.connectTo(ctx, v1alpha1.PlatformTikTok, "tiktok", fmt.Sprintf("tt%08d", serial.Add(1)), nil)
		}
		toTikTok := func(p *v1alpha1.Post) {
			p.Spec.Targets[0].ConnectionRef.Name = "tiktok"
			p.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}
		}

		It("is copied before its time", func(ctx SpecContext) {
			t := newTeam(ctx)
			account := onTikTok(ctx, t)
			hash, key, address := uploaded(ctx, t, "a")
			p := t.post(ctx, "look", showing("a"), toTikTok, at(30*time.Second))
			Eventually(func() (copies int) {
				for _, err := range bucket.List(ctx, store.Derived(key, "")) {
					Expect(err).NotTo(HaveOccurred())
					copies++
				}
				return copies
			}).Should(Equal(1))
			// The copy exists before the status records it.
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
			overwrite(ctx, address)
			edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now()) })
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Expect(hashes(ctx, "tiktok", account)).To(Equal([]string{hash}))
		})

		It("is reported as changed before its time", func(ctx SpecContext) {
			t := newTeam(ctx)
			onTikTok(ctx, t)
			_, _, address := uploaded(ctx, t, "a")
			overwrite(ctx, address)
			p := t.post(ctx, "look", showing("a"), toTikTok, at(time.Minute))
			Eventually(func() string {
				c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionPrepared)
				if c == nil {
					return ""
				}
				return string(c.Status) + " " + c.Message
			}).Should(And(HavePrefix("False"), ContainSubstring(`"picture.jpg" is no longer the one that was checked`)))
		})
	})
})
