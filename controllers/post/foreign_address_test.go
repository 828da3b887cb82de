// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("An address that an editor puts into the Secret of uploads", func() {
	// inside is a service that only the manager's network can reach.
	It("is never called, and the post goes out without it", func(ctx SpecContext) {
		var calls atomic.Int32
		inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(http.StatusPermanentRedirect)
		}))
		defer inside.Close()
		runManager(func(o *post.Options) {
			o.Platforms[v1alpha1.PlatformYouTube] = youtube.New(youtube.Config{APIURL: platform.URL + "/youtube", WebURL: platform.URL + "/youtube"},
				transport.New(transport.Options{Registerer: prometheus.NewRegistry()}))
		})
		t := newTeam(ctx)
		t.account = t.connectTo(ctx, v1alpha1.PlatformYouTube, "youtube", fmt.Sprintf("UC%022d", serial.Add(1)), nil)
		file(ctx, t, "film", "tenseconds.mp4", v1alpha1.MimeMP4)
		var media v1alpha1.Media
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "film"}, &media)).To(Succeed())
		var conn v1alpha1.Connection
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "youtube"}, &conn)).To(Succeed())

		By("a draft, whose UID tells the name of the Secret, and whose content all that is hashed")
		p := t.post(ctx, "look", func(p *v1alpha1.Post) {
			p.Spec.Draft = true
			p.Spec.Targets[0].ConnectionRef.Name = "youtube"
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "t"}
			p.Spec.Category = v1alpha1.CategoryVideo
			p.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}}
		})
		Eventually(func() []v1alpha1.TargetStatus { return read(ctx, p).Status.Targets }).ShouldNot(BeEmpty())
		address := inside.URL + "/-/quit?any=query"
		sum := sha256.Sum256([]byte(address))
		planted := suite.Must(json.Marshal(map[string]string{
			"contentHash": delivery.ContentHash(read(ctx, p), 0, &conn, map[string]*v1alpha1.Media{"film": &media}),
			"checkpoint":  base64.RawURLEncoding.EncodeToString(sum[:9]), "secret": "0 " + address,
		}))
		Expect(k8s.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "herald-uploads-" + string(p.UID), Namespace: t.namespace},
			Data:       map[string][]byte{"0": planted},
		})).To(Succeed())
		By("publish it")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(calls.Load()).To(BeZero())
	})
})
