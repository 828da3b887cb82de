// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/test/must"
)

// maxReviews limits the TokenReviews for forged tokens from one address: the limit for a minute, plus the amount by
// which it recovers during the test.
const maxReviews = 60

// metrics sends forged tokens to the metrics port.
func metrics(t *testing.T, under *target) {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"x"}`))
	for i, tc := range []struct {
		name, reason string
		token        func(n int) string
		most         int
	}{
		{"no token at all", "the response shows any text", func(n int) string { return fmt.Sprintf("made-up-%d", n) }, 0},
		{"too long", "Kubernetes tokens are shorter", func(n int) string { return fmt.Sprintf("%s.%d.%s", header, n, strings.Repeat("a", 5000)) }, 0},
		{"well-formed tokens", "only the Kubernetes API can reject them", func(n int) string { return fmt.Sprintf("%s.%d.c2ln", header, n) }, maxReviews},
		{"a repeated token", "the result is cached for a while", func(int) string { return header + ".same.c2ln" }, maxReviews},
	} {
		t.Run(tc.name, func(t *testing.T) {
			by := client(t, 40_000+i)
			by.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // self-signed
			before, answered := reviews(t, under), map[int]int{}
			_, logged := under.logged(t, 0)
			asked := sized(1000, 8000)
			for n := range asked {
				got, err := request(t.Context(), by, http.MethodGet, "https://"+under.Metrics+"/metrics", with("Authorization", "Bearer "+tc.token(n)), "")
				must.Succeed(t, err)
				answered[got.status]++
			}
			lines, _ := under.logged(t, logged)
			asks := int(reviews(t, under) - before)
			t.Logf("%s: %d requests returned %v; %d TokenReviews, %d log lines", tc.reason, asked, answered, asks, len(lines))
			if asks > tc.most {
				t.Errorf("sent %d requests to the Kubernetes API, want at most %d", asks, tc.most)
			}
			if answered[http.StatusUnauthorized]+answered[http.StatusTooManyRequests] != asked {
				t.Errorf("responses: %v", answered)
			}
			if len(lines) > 10 {
				t.Errorf("one stranger caused %d log lines", len(lines))
			}
		})
	}
	under.served(t, 40_100)
}

// reviews returns the number of TokenReviews that the Kubernetes API has received.
func reviews(t *testing.T, under *target) (count float64) {
	t.Helper()
	by, err := rest.HTTPClientFor(under.kubernetes)
	must.Succeed(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, under.kubernetes.Host+"/metrics", http.NoBody)
	must.Succeed(t, err)
	response, err := by.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	must.Succeed(t, err)
	for _, m := range families["apiserver_request_total"].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "resource" && label.GetValue() == "tokenreviews" {
				count += m.GetCounter().GetValue()
			}
		}
	}
	return count
}
