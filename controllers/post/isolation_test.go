// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/herald-social/herald/api/v1alpha1"
)

// refusing responds to requests for the record of the post "odd" with a store error, if they use the given method; ""
// matches any method.
func refusing(method string, status int, code string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/posts/odd.json") || method != "" && req.Method != method {
			return nil, nil
		}
		body := "<Error><Code>" + code + "</Code><Message>no</Message></Error>"
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(bytes.NewBufferString(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// unreachable loses the requests for the record of the post "odd".
func unreachable(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/posts/odd.json") {
		return nil, errCut
	}
	return nil, nil
}

// acceptedReason returns the reason of a post's Accepted condition, or "" if there is none.
func acceptedReason(ctx context.Context, p *v1alpha1.Post) string {
	if accepted := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionAccepted); accepted != nil {
		return accepted.Reason
	}
	return ""
}

var _ = Describe("A fault of the store that concerns one post", func() {
	var k *keeping
	var acme team
	BeforeEach(func(ctx SpecContext) {
		k = newKeeping()
		runManager(k.options)
		acme = newTeam(ctx)
	})
	// healthy creates and deletes other posts of the team.
	healthy := func(ctx context.Context) {
		GinkgoHelper()
		for i := range 3 {
			p := posted(ctx, acme.apply(ctx, fmt.Sprint("healthy-", i), fmt.Sprint("hello for the time ", i)))
			remove(ctx, p)
			Expect(k.of(ctx, acme.namespace, p.Name)).NotTo(BeNil())
		}
	}

	DescribeTable("keeps that one from being sent unasked, and no other one:", func(ctx SpecContext, fault func(*http.Request) (*http.Response, error)) {
		k.refuses.Store(&fault)
		odd := acme.apply(ctx, "odd", "the odd one")
		Eventually(func() string { return acceptedReason(ctx, odd) }).Should(Equal(v1alpha1.ReasonRecordUnavailable))
		healthy(ctx)
		Expect(publishesBy(acme.account)).To(Equal(3))
		Expect(acceptedReason(ctx, odd)).To(Equal(v1alpha1.ReasonRecordUnavailable))
		k.refuses.Store(nil)
		Eventually(phase(ctx, odd)).WithTimeout(time.Minute).Should(Equal(v1alpha1.PhasePosted))
	},
		Entry("a key that is too long for it", refusing("", http.StatusBadRequest, "KeyTooLongError")),
		Entry("a name that its disk does not take", refusing("", http.StatusBadRequest, "XMinioInvalidObjectName")),
		Entry("a rule about that key", refusing("", http.StatusForbidden, "AccessDenied")),
		Entry("a document that it has put into cold storage", refusing("", http.StatusForbidden, "InvalidObjectState")),
		Entry("a link that loses its requests", unreachable),
	)

	DescribeTable("keeps that one for an hour when it is deleted, and no other one:", func(ctx SpecContext, fault func(*http.Request) (*http.Response, error)) {
		odd := acme.apply(ctx, "odd", "the odd one")
		k.refuses.Store(&fault)
		Eventually(phase(ctx, odd)).Should(Equal(v1alpha1.PhasePosted))
		Expect(k8s.Delete(ctx, odd)).To(Succeed())
		Eventually(warned(ctx, acme.namespace, odd.Name, v1alpha1.ReasonRecordUnavailable)).ShouldNot(BeEmpty())
		healthy(ctx)
		Expect(gone(ctx, odd)()).To(BeFalse())
		k.ahead.Store(int64(62 * time.Minute))
		healthy := posted(ctx, acme.apply(ctx, "healthy", "hello an hour later"))
		Eventually(gone(ctx, odd)).Should(BeTrue())
		Eventually(warned(ctx, acme.namespace, odd.Name, v1alpha1.ReasonRecordAbandoned)).ShouldNot(BeEmpty())
		remove(ctx, healthy)
		Expect(k.of(ctx, acme.namespace, healthy.Name)).NotTo(BeNil())
	},
		Entry("a key that is too long for it", refusing(http.MethodPut, http.StatusBadRequest, "KeyTooLongError")),
		Entry("a rule about that key", refusing(http.MethodPut, http.StatusForbidden, "AccessDenied")),
	)
})
