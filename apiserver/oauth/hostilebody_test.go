// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// TestThreatHostileBodies verifies that hostile bodies are rejected, and use little memory: a body is truncated at 16
// KiB, and its decoded form is at most a hundred times as large. The test does not run in parallel, since it would
// count the memory of other tests.
func TestThreatHostileBodies(t *testing.T) { //nolint:paralleltest // it measures
	const most = 2 << 20
	form := "application/x-www-form-urlencoded"
	for _, tc := range []struct{ name, reason, path, kind, body string }{
		{"a mebibyte", "it is not read to its end", RegisterPath, jsonType, `{"client_name":"` + strings.Repeat("a", 1<<20)},
		{"nothing but brackets", "each is a level of a decoder", RegisterPath, jsonType, strings.Repeat("[", maxRegistration)},
		{"brackets within a field", "the field is of another kind", RegisterPath, jsonType, `{"redirect_uris":` + strings.Repeat("[", maxRegistration-20)},
		{"thousands of addresses", "each is a string of its own", RegisterPath, jsonType, `{"redirect_uris":["` + strings.Repeat(`","`, 5000) + `"]}`},
		{"a field many times", "the last would hold", RegisterPath, jsonType, `{` + strings.Repeat(`"redirect_uris":["a"],`, 700) + `"client_name":"x"}`},
		{"thousands of parameters", "each is an entry of a map", TokenPath, form, strings.Repeat("a&", maxTokenForm/2)},
		{"different parameters", "each with a name of its own", TokenPath, form, manyParameters(maxTokenForm)},
		{"a form of a mebibyte", "it is not read to its end", TokenPath, form, "code=" + strings.Repeat("a", 1<<20)},
		{"a code as long as the form", "it is taken apart and verified", TokenPath, form, "grant_type=authorization_code&code=" + strings.Repeat("a.", maxTokenForm/2-50)},
		{"a token as long as the form", "the same at the end of a grant", RevokePath, form, "token=" + strings.Repeat("a.", maxTokenForm/2-50)},
		{"percent signs", "each is three bytes for one, or a mistake", TokenPath, form, "code=" + strings.Repeat("%25", maxTokenForm/3-10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			handler := w.Handler(tc.path)
			out := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, site+tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(out, r)
			runtime.ReadMemStats(&after)
			if out.Code < 400 && tc.path != RevokePath || out.Code >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", tc.reason, out.Code, out.Body)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > most {
				t.Errorf("%s: %d bytes were allocated", tc.reason, taken)
			}
			if w.grants.version != 0 {
				t.Errorf("%s: %d writes", tc.reason, w.grants.version)
			}
		})
	}
}

// manyParameters returns a form of the given size, in bytes, with as many parameters as fit.
func manyParameters(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size-4; i++ {
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + "&")
	}
	return b.String()
}
