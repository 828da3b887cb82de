// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
)

// sample returns a real file.
func sample(name string) []byte {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("..", "internal", "media", "probe", "testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return data
}

type uploadBody struct {
	Data struct {
		MediaID   string `json:"media_id"`
		UploadURL string `json:"upload_url"`
		Name      string `json:"name"`
	} `json:"data"`
}

func upload(name, mimeType string, size int) string {
	return fmt.Sprintf(`{"name":%q,"mime_type":%q,"size_bytes":%d}`, name, mimeType, size)
}

// put sends a file to a signed URL, as a client does.
func put(ctx context.Context, address, mimeType string, data []byte) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(data))
	Expect(err).NotTo(HaveOccurred())
	if mimeType != "" {
		request.Header.Set("Content-Type", mimeType)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// uploaded uploads a file and returns its id.
func (t *team) uploaded(ctx context.Context, name, mimeType string, data []byte) string {
	GinkgoHelper()
	r := t.call(ctx, "POST", "/media/upload-url", upload(name, mimeType, len(data)))
	Expect(r.status).To(Equal(http.StatusCreated), r.body)
	got := as[uploadBody](r).Data
	Expect(put(ctx, got.UploadURL, mimeType, data)).To(Equal(http.StatusOK))
	return got.MediaID
}

func (t *team) media(ctx context.Context, id string) *v1alpha1.Media {
	GinkgoHelper()
	m := &v1alpha1.Media{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: id}, m)).To(Succeed())
	return m
}

var _ = Describe("asking for an upload URL", func() {
	var t *team
	BeforeEach(func(ctx context.Context) { t = newTeam(ctx) })

	It("returns an id and a URL that accepts only the declared type, for 15 minutes", func(ctx SpecContext) {
		picture := sample("picture.png")
		r := t.call(ctx, "POST", "/media/upload-url", upload("launch.png", "image/png", len(picture)))
		Expect(r.status).To(Equal(http.StatusCreated), r.body)
		got := as[uploadBody](r).Data
		Expect(got.Name).To(Equal("launch.png"))
		Expect(got.MediaID).To(HaveLen(26), "ids cannot be guessed")
		address, err := url.Parse(got.UploadURL)
		Expect(err).NotTo(HaveOccurred())
		Expect(address.Query().Get("X-Amz-Expires")).To(Equal("900"))
		Expect(put(ctx, got.UploadURL, "image/jpeg", picture)).To(Equal(http.StatusForbidden), "another type")
		Expect(put(ctx, got.UploadURL, "", picture)).To(Equal(http.StatusForbidden), "no type")
		Expect(put(ctx, got.UploadURL, "image/png", append(picture, 0))).To(Equal(http.StatusForbidden), "a larger file than announced")
		Expect(put(ctx, got.UploadURL, "image/png", picture[1:])).To(Equal(http.StatusForbidden), "a smaller one")
		Expect(put(ctx, got.UploadURL, "image/png", picture)).To(Equal(http.StatusOK))
		m := t.media(ctx, got.MediaID)
		Expect(m.Spec).To(Equal(v1alpha1.MediaSpec{FileName: "launch.png", MimeType: "image/png", SizeBytes: int64(len(picture))}))
		Expect(m.Labels).To(HaveKeyWithValue(v1alpha1.OriginLabel, v1alpha1.OriginAPI))
		Expect(m.Finalizers).To(ConsistOf(v1alpha1.MediaFileFinalizer), "no file outlives its resource")
	})

	It("answers browsers' preflight requests", func(ctx SpecContext) {
		got := as[uploadBody](t.call(ctx, "POST", "/media/upload-url", upload("a.png", "image/png", 10))).Data
		request, err := http.NewRequestWithContext(ctx, http.MethodOptions, got.UploadURL, http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Origin", "https://app.example.com")
		request.Header.Set("Access-Control-Request-Method", "PUT")
		request.Header.Set("Access-Control-Request-Headers", "content-type")
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(BeNumerically("<", 300))
		Expect(response.Header.Get("Access-Control-Allow-Origin")).NotTo(BeEmpty())
	})

	DescribeTable("accepts each type up to its limit",
		func(ctx context.Context, name, mimeType string, size int) {
			r := t.call(ctx, "POST", "/media/upload-url", upload(name, mimeType, size))
			Expect(r.status).To(Equal(http.StatusCreated), r.body)
		},
		Entry("mp4, 1 GB", "a.mp4", "video/mp4", 1<<30),
		Entry("mov, 1 GB", "a.MOV", "video/quicktime", 1<<30),
		Entry("jpg, 20 MB", "a.jpg", "image/jpeg", 20<<20),
		Entry("jpeg", "a.b.jpeg", "image/jpeg", 1),
		Entry("png, one byte", "Zürich 写真.png", "image/png", 1),
		Entry("webp", "a.webp", "image/webp", 7),
	)

	DescribeTable("rejects files that could not be posted",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/media/upload-url", body).mustFail(400, "VALIDATION_ERROR", words)
			found := &v1alpha1.MediaList{}
			Expect(admin.List(ctx, found)).To(Succeed())
			for i := range found.Items {
				Expect(found.Items[i].Namespace).NotTo(Equal(t.namespace), "the rejected upload created no Media")
			}
		},
		Entry("no type", `{"name":"a.png","size_bytes":1}`, "mime_type: is missing"),
		Entry("no size", `{"name":"a.png","mime_type":"image/png"}`, "size_bytes: is missing"),
		Entry("no name", `{"size_bytes":1,"mime_type":"image/png"}`, "name: is missing"),
		Entry("an empty name", upload("", "image/png", 1), "name: must not be empty"),
		Entry("a GIF", upload("a.gif", "image/gif", 1), "mime_type: must be one of"),
		Entry("an empty file", upload("a.png", "image/png", 0), "size_bytes: "),
		Entry("a video over 1 GB", upload("a.mp4", "video/mp4", 1<<30+1), "size_bytes: a video has 1 to 1073741824 bytes"),
		Entry("an image over 20 MB", upload("a.png", "image/png", 20<<20+1), "size_bytes: an image has 1 to 20971520 bytes"),
		Entry("another extension", upload("a.gif", "image/png", 1), "name: the name of an image ends in .jpg, .jpeg, .png or .webp"),
		Entry("an image's extension on a video", upload("a.png", "video/mp4", 1), "name: the name of a video ends in .mp4 or .mov"),
	)
})

var _ = Describe("a file that was just uploaded", func() {
	var t *team
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	image := func(id string) string {
		return fmt.Sprintf(`{"category":"image","media_ids":[%q],"targets":[{"connection_id":"acme-x","caption":"look"}]}`, id)
	}
	video := func(id string) string {
		return fmt.Sprintf(`{"category":"video","media_id":%q,"targets":[{"connection_id":"acme-x","caption":"look"}]}`, id)
	}

	It("can be posted immediately: it is verified during the request", func(ctx SpecContext) {
		id := t.uploaded(ctx, "a.jpg", "image/jpeg", sample("picture.jpg"))
		Expect(t.media(ctx, id).Status.Phase).To(BeEmpty(), "no manager has seen it")
		Expect(t.create(ctx, image(id)).MediaIDs).To(Equal([]string{id}))
		status := t.media(ctx, id).Status
		Expect(status.Phase).To(Equal(v1alpha1.MediaUploaded))
		Expect([]int32{status.Width, status.Height}).To(Equal([]int32{64, 48}))
		Expect(status.ETag).NotTo(BeEmpty())
		Expect(conditions.IsReady(status.Conditions)).To(BeTrue())

		id = t.uploaded(ctx, "a.mov", "video/quicktime", sample("quicktime.mov"))
		Expect(t.create(ctx, video(id)).MediaIDs).To(Equal([]string{id}))
		Expect(t.media(ctx, id).Status.DurationMillis).To(BeEquivalentTo(1500))
	})

	It("can be posted by many requests concurrently", func(ctx SpecContext) {
		id := t.uploaded(ctx, "a.png", "image/png", sample("picture.png"))
		var requests sync.WaitGroup
		for range 6 {
			requests.Go(func() {
				defer GinkgoRecover()
				t.create(ctx, image(id))
			})
		}
		requests.Wait()
	})

	It("is rejected with a reason if it does not match its declaration", func(ctx SpecContext) {
		for words, id := range map[string]string{
			"content is image/png":      t.uploaded(ctx, "a.jpg", "image/jpeg", sample("picture.png")),
			"cut off":                   t.uploaded(ctx, "a.png", "image/png", sample("picture.png")[:400]),
			"its content is text/plain": t.uploaded(ctx, "b.png", "image/png", []byte("hello, this is no picture")),
		} {
			t.call(ctx, "POST", "/posts", image(id)).mustFail(400, "VALIDATION_ERROR", "media_ids[0]: the file was rejected: ")
			t.call(ctx, "POST", "/posts", image(id)).mustFail(400, "VALIDATION_ERROR", words)
			Expect(t.media(ctx, id).Status.Phase).To(Equal(v1alpha1.MediaRejected))
		}
		small := as[uploadBody](t.call(ctx, "POST", "/media/upload-url", upload("a.png", "image/png", 100))).Data
		Expect(put(ctx, small.UploadURL, "image/png", sample("picture.png"))).To(Equal(http.StatusForbidden), "the store refuses it")
		picture := sample("picture.png")
		_, err := files.Put(ctx, store.Key(t.media(ctx, small.MediaID)), "image/png", int64(len(picture)), bytes.NewReader(picture))
		Expect(err).NotTo(HaveOccurred(), "an upload URL from an earlier version")
		t.call(ctx, "POST", "/posts", image(small.MediaID)).mustFail(400, "VALIDATION_ERROR", "but 100 were declared")
		Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(BeZero())
	})

	It("is rejected while it is overwritten, and can be posted afterwards", func(ctx SpecContext) {
		id := t.uploaded(ctx, "a.png", "image/png", sample("picture.png"))
		own := start(restricted, func(c *apiserver.Config) {
			c.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
				return v1alpha1.MediaStatus{}, fmt.Errorf("again and again: %w", store.ErrChanged)
			}
		})
		defer own.stop()
		header := map[string]string{"Authorization": "Bearer " + t.token}
		Eventually(func() int { return do(ctx, own, "GET", base+"/posts", "", header).status }).Should(Equal(http.StatusOK))
		do(ctx, own, "POST", base+"/posts", image(id), header).mustFail(400, "VALIDATION_ERROR",
			"media_ids[0]: the file is overwritten while it is examined; end that upload, then send the post again: media file")
		Expect(t.media(ctx, id).Status.Phase).To(BeEmpty())
		Expect(t.create(ctx, image(id)).MediaIDs).To(Equal([]string{id}))
	})

	It("is rejected before it is uploaded, after it is deleted, and if it belongs to another team", func(ctx SpecContext) {
		empty := as[uploadBody](t.call(ctx, "POST", "/media/upload-url", upload("a.png", "image/png", 10))).Data.MediaID
		t.call(ctx, "POST", "/posts", image(empty)).mustFail(400, "VALIDATION_ERROR", "nothing has been uploaded yet")
		gone := t.uploaded(ctx, "a.png", "image/png", sample("picture.png"))
		m := t.media(ctx, gone)
		m.Status.Phase = v1alpha1.MediaExpired
		Expect(admin.Status().Update(ctx, m)).To(Succeed())
		t.call(ctx, "POST", "/posts", image(gone)).mustFail(400, "VALIDATION_ERROR", "upload it again")
		foreign := newTeam(ctx).uploaded(ctx, "a.png", "image/png", sample("picture.png"))
		t.call(ctx, "POST", "/posts", image(foreign)).mustFail(400, "VALIDATION_ERROR", fmt.Sprintf("no such media file %q in this team", foreign))
		t.call(ctx, "POST", "/posts", image("../secrets")).mustFail(400, "VALIDATION_ERROR", "no such media file")
	})
})
