// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"strings"
	"testing"
)

// BenchmarkParse measures figures in docs/adr/0009-own-json-decoder.md: a usual post, nesting at the limit, and hostile
// bodies of 8 MiB: small objects up to the limit, one string of escapes and one without.
func BenchmarkParse(b *testing.B) {
	const hostile = 8 << 20
	for name, body := range map[string]string{
		"Post": `{"category":"text","scheduled_at":"2026-12-01T09:00:00.000Z","targets":[` +
			`{"connection_id":"acme-x","caption":"We launched \ud83d\ude80 and here is what it does: https://example.com/launch"},` +
			`{"connection_id":"acme-threads","caption":"We launched. It took a while, but here it is, and we are proud of it."}]}`,
		"Deep":    `{"a":` + nested(MaxDepth-1) + `}`,
		"Objects": `{"a":[` + strings.Repeat(`{"a":1},`, hostile/8) + `0]}`,
		"Escapes": `{"a":"` + strings.Repeat(`\u00e4\n`, hostile/8) + `"}`,
		"Text":    `{"a":"` + strings.Repeat("launched", hostile/8) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(body)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(in)
			}
		})
	}
}
