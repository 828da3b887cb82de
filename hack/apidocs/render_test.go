// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	t.Parallel()
	const head = "openapi: 3.0.3\ninfo: {title: <script>alert(1)</script>, version: 1.0.0, description: %s}\nservers: [{url: /api/v1}]\ntags: [{name: a, description: b}]\n"
	tests := map[string]struct{ reason, document, want, not, wantErr string }{
		"Hostile": {
			"markup in the document is escaped everywhere",
			strings.Replace(head, "%s", `"<img src=x onerror=alert(1)> [x](javascript:alert(1))"`, 1), "&lt;script&gt;", "<img", "",
		},
		"NoResponse": {
			"a dangling reference is an error",
			strings.Replace(head, "%s", "d", 1) + "paths: {/p: {get: {operationId: o, tags: [a], responses: {'400': {$ref: '#/components/responses/Nope'}}}}}",
			"", "", "describe the API: o: response 400: the document has no #/components/responses/Nope",
		},
		"NoServer": {"the examples need a server URL", "info: {}", "", "", "describe the API: the document names 0 servers, want one"},
		"NotYAML":  {"an unreadable document fails at startup", "a: [", "", "", "describe the API: yaml: line 1: did not find expected node content"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := render([]byte(tc.document), site{URL: "https://herald.example.com", Page: "/docs", Document: "/openapi"})
			if err != nil || tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("%s: got %v, want %s", tc.reason, err, tc.wantErr)
				}
				return
			}
			body := string(got)
			if !strings.Contains(body, tc.want) || strings.Contains(body, tc.not) || strings.Contains(body, `href="javascript:`) {
				t.Errorf("%s:\n%s", tc.reason, body)
			}
		})
	}
}
