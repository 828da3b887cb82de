// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// raw sends bytes and returns the response.
func raw(request string) (*http.Response, []byte) {
	GinkgoHelper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(instance.site, "http://"))
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close() //nolint:errcheck // no longer needed
	_, err = io.WriteString(conn, request)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response, body
}

var _ = Describe("what is no request", func() {
	DescribeTable("is answered in the shape of every error",
		func(request string, status int, words string) {
			response, body := raw(request)
			Expect(response.StatusCode).To(Equal(status), "%s", body)
			Expect(response.Header.Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
			Expect(response.Header.Get("X-Request-Id")).NotTo(BeEmpty())
			var envelope struct {
				Error struct {
					Code    string `json:"code"`
					Message string `json:"message"`
				} `json:"error"`
			}
			Expect(json.Unmarshal(body, &envelope)).To(Succeed(), "%s", body)
			Expect(envelope.Error.Code).To(Equal("VALIDATION_ERROR"))
			Expect(envelope.Error.Message).To(ContainSubstring(words))
		},
		Entry("an escape that means nothing, in an id", "GET /api/v1/posts/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "Bad Request"),
		Entry("no host", "GET /health HTTP/1.1\r\n\r\n", 400, "missing required Host header"),
		Entry("a length that is no number", "POST /api/v1/posts HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, "Bad Request"),
		Entry("a header without a name", "GET /health HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400, "Bad Request"),
		Entry("headers that are too large", "GET /health HTTP/1.1\r\nHost: h\r\nX: "+strings.Repeat("a", 80<<10)+"\r\n\r\n", 431, "Request Header Fields Too Large"),
		Entry("an encoding of the way", "POST /api/v1/posts HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "nsupported transfer encoding"),
		Entry("another version", "GET /health HTTP/3.0\r\nHost: h\r\n\r\n", 505, "HTTP Version Not Supported"),
	)

	It("does not touch what handlers answer", func() {
		response, body := raw("GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Expect(string(body)).To(Equal("{\"status\":\"ok\"}\n"))
	})
})
