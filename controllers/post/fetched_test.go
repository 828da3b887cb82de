// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
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
	response := suite.Must(new(http.Client).Do(req))
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
}

var _ = Describe("A file that its platform fetches", Ordered, func() {
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

	It("is the one that was verified, even if it is overwritten before the platform fetches it", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		hash, key, address := uploaded(ctx, t, "a")
		files.uploads.Store(&map[string]string{key: address})
		DeferCleanup(func() { files.uploads.Store(nil) })
		posted(ctx, t.post(ctx, "look", showing("a"), toThreads))
		Expect(hashes(ctx, "threads", account)).To(Equal([]string{hash}))
	})

	It("is not fetched at all once it was overwritten", func(ctx SpecContext) {
		t := newTeam(ctx)
		account := t.onThreads(ctx, 0)
		_, _, address := uploaded(ctx, t, "a")
		overwrite(ctx, address)
		p := t.post(ctx, "look", showing("a"), toThreads)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring(`"picture.jpg" is not the one that was checked`))
		Expect(hashes(ctx, "threads", account)).To(BeEmpty())
	})

	Context("with the call that publishes", func() {
		// onTikTok creates a TikTok account and a ready connection to it.
		onTikTok := func(ctx context.Context, t team) sandboxtest.Account {
			GinkgoHelper()
			return t.connectTo(ctx, v1alpha1.PlatformTikTok, "tiktok", fmt.Sprintf("tt%08d", serial.Add(1)), nil)
		}
		toTikTok := func(p *v1alpha1.Post) {
			p.Spec.Targets[0].ConnectionRef.Name = "tiktok"
			p.Spec.Targets[0].TikTok = &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}
		}

		It("is copied ahead of time", func(ctx SpecContext) {
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

		It("is told to be another before its time", func(ctx SpecContext) {
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
			}).Should(And(HavePrefix("False"), ContainSubstring(`"picture.jpg" is not the one that was checked`)))
		})
	})
})
