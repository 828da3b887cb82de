// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

func mediaFile(mimeType v1alpha1.MimeType, size int64) *v1alpha1.Media {
	return &v1alpha1.Media{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Media"},
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("m-%d", serial.Add(1))},
		Spec:       v1alpha1.MediaSpec{FileName: "a", MimeType: mimeType, SizeBytes: size},
	}
}

var _ = Describe("applying a media file", func() {
	DescribeTable("admits the contract's file types up to their limits",
		func(ctx context.Context, mimeType v1alpha1.MimeType, size int64) {
			Expect(apply(ctx, user, mediaFile(mimeType, size))).To(Succeed())
		},
		Entry("an MP4 of 1 GB", v1alpha1.MimeMP4, int64(1<<30)),
		Entry("a QuickTime film of 1 GB", v1alpha1.MimeQuickTime, int64(1<<30)),
		Entry("a JPEG of 20 MB", v1alpha1.MimeJPEG, int64(20<<20)),
		Entry("a PNG of 20 MB", v1alpha1.MimePNG, int64(20<<20)),
		Entry("a WebP of one byte", v1alpha1.MimeWebP, int64(1)),
	)

	DescribeTable("rejects others",
		func(ctx context.Context, field string, mimeType v1alpha1.MimeType, size int64) {
			Expect(causes(apply(ctx, user, mediaFile(mimeType, size)))).To(ContainElement(HavePrefix(field + ": ")))
		},
		Entry("a video over 1 GB", "spec.sizeBytes", v1alpha1.MimeMP4, int64(1<<30+1)),
		Entry("an image over 20 MB", "spec.sizeBytes", v1alpha1.MimePNG, int64(20<<20+1)),
		Entry("an empty file", "spec.sizeBytes", v1alpha1.MimePNG, int64(0)),
		Entry("a GIF", "spec.mimeType", v1alpha1.MimeType("image/gif"), int64(1)),
	)
})
