// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// decodes checks that the manager can decode uploads, each in its own process, in an unprivileged pod: no capabilities,
// a read-only root filesystem, and a runtime seccomp profile that must allow Herald to install its own filter.
func decodes(ctx context.Context) {
	GinkgoHelper()
	restarts := leader(ctx).Status.ContainerStatuses[0].RestartCount
	put(ctx, "drawing", "image/png", transparent())
	picture := postTo("converted", v1alpha1.CategoryImage, v1alpha1.PlatformInstagram)
	picture.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "drawing"}}}
	Expect(k8s.Create(ctx, picture)).To(Succeed())
	Eventually(online(ctx, picture)).WithContext(ctx).Should(BeTrue(), "Instagram only accepts JPEG")

	damaged := transparent()
	put(ctx, "damaged", "image/png", append(damaged[:len(damaged)/2:len(damaged)/2], append(make([]byte, 64), damaged[len(damaged)-12:]...)...))
	refused := postTo("not-converted", v1alpha1.CategoryImage, v1alpha1.PlatformInstagram)
	refused.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "damaged"}}}
	Expect(k8s.Create(ctx, refused)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(refused), refused)).To(Succeed())
		g.Expect(refused.Status.Targets).To(HaveLen(1))
		g.Expect(refused.Status.Targets[0].Message).To(ContainSubstring("cannot be converted"))
	}).WithContext(ctx).Should(Succeed())
	Expect(leader(ctx).Status.ContainerStatuses[0].RestartCount).To(Equal(restarts), "the file must not crash the manager")

	film := applied(ctx)[v1alpha1.CategoryVideo]
	film.Name, film.Spec.Video.ThumbnailOffsetMillis = "with-thumbnail", new(int32(500))
	Expect(k8s.Create(ctx, film)).To(Succeed())
	Eventually(online(ctx, film)).WithContext(ctx).Should(BeTrue())
	events, err := typed.EventsV1().Events(demo).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range events.Items {
		Expect(events.Items[i].Reason).NotTo(Equal(v1alpha1.ReasonThumbnailNotSet), events.Items[i].Note)
	}
}

// transparent returns a transparent PNG.
func transparent() []byte {
	var out bytes.Buffer
	Expect(png.Encode(&out, image.NewNRGBA(image.Rect(0, 0, 400, 400)))).To(Succeed())
	return out.Bytes()
}

// put applies a Media and uploads its file to the URL in its status.
func put(ctx context.Context, name string, mimeType v1alpha1.MimeType, data []byte) {
	GinkgoHelper()
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: name + ".png", MimeType: mimeType, SizeBytes: int64(len(data))},
	}
	Expect(k8s.Create(ctx, media)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(media), media)).To(Succeed())
		g.Expect(media.Status.UploadURL).NotTo(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, media.Status.UploadURL, bytes.NewReader(data))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", string(mimeType))
	// The address is signed for the clients' host name.
	forwarded, err := url.Parse(forward(ctx, one(ctx, "store"), 9000))
	Expect(err).NotTo(HaveOccurred())
	request.Host, request.URL.Host = request.URL.Host, forwarded.Host
	answer, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	Expect(answer.StatusCode).To(Equal(http.StatusOK), string(body))
}
