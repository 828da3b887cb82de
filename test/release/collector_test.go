// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// collector receives traces through OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu sync.Mutex
	// spans are "SERVICE: NAME", by trace id; text is everything received.
	spans map[string][]string
	text  strings.Builder
}

func (c *collector) start() {
	c.spans = map[string][]string{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		Expect(r.URL.Path).To(Equal("/v1/traces"))
		body, err := io.ReadAll(r.Body)
		Expect(err).NotTo(HaveOccurred())
		var data tracepb.TracesData
		Expect(proto.Unmarshal(body, &data)).To(Succeed())
		c.export(&data)
	}))
	DeferCleanup(c.Close)
}

func (c *collector) export(data *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(prototext.Format(data))
	for _, from := range data.ResourceSpans {
		service := ""
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				trace := hex.EncodeToString(span.TraceId)
				c.spans[trace] = append(c.spans[trace], service+": "+span.Name)
			}
		}
	}
}

// of returns the spans of a trace.
func (c *collector) of(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans[trace])
}

// said returns everything received.
func (c *collector) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}
