// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

const (
	onX       = "We launched 🚀 — and here is what it does: https://example.com/launch"
	onThreads = "We launched. It took a while, but here it is, and we are proud of it."
)

// The benchmarks measure the figures in docs/adr/0009-own-json-decoder.md: a usual post with two targets, from the body
// to the request and from the post to the response. They serve goal B1 of docs/performance.md.

func BenchmarkDecode(b *testing.B) {
	body := `{"category":"text","scheduled_at":"2026-12-01T09:00:00.000Z","targets":[` +
		`{"connection_id":"acme-x","caption":"` + strings.Replace(onX, "🚀", `\ud83d\ude80`, 1) + `"},` +
		`{"connection_id":"acme-threads","caption":"` + onThreads + `"}]}`
	b.ReportAllocs()
	for b.Loop() {
		read, err := io.ReadAll(strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := readPost(read); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	post := &bridge.PostDetail{
		ID: "pk3v5q2w7n4x6r2t4y6m3s5d2f4", Status: v1alpha1.PhaseScheduled, Category: v1alpha1.CategoryText, ScheduledAt: &at, CanCancel: true, DisplayAt: at,
		Platforms: []bridge.PlatformDetail{
			{Platform: v1alpha1.PlatformX, ConnectionID: "acme-x", AccountName: "Acme", Status: v1alpha1.PhaseScheduled, Caption: onX},
			{Platform: v1alpha1.PlatformThreads, ConnectionID: "acme-threads", AccountName: "Acme", Status: v1alpha1.PhaseScheduled, Caption: onThreads},
		},
	}
	buffer := AppendPost(nil, post)
	b.ReportAllocs()
	for b.Loop() {
		buffer = AppendPost(buffer[:0], post)
	}
}
