// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"testing"

	"github.com/herald-social/herald/platforms/internal/meta/metatest"
)

// TestErrorTable has an expectation for each row of the table, and compares the page that documents it. To write the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	metatest.CheckErrors(t, "threads", &p.graph.Graph, map[string]metatest.Want{
		"24": metatest.Trouble, "24/4279009": metatest.Trouble, "100/4279004": metatest.Trouble, "4279013": metatest.Restricted,
		"9004/2207052": metatest.NotFetched, "FAILED_DOWNLOADING_VIDEO": metatest.NotFetched,
		"100 THREADS_API__LINK_LIMIT_EXCEEDED": metatest.BadText,
		"FAILED_PROCESSING_AUDIO":              metatest.BadFile, "FAILED_PROCESSING_VIDEO": metatest.BadFile, "INVALID_ASPEC_RATIO": metatest.BadFile,
		"INVALID_BIT_RATE": metatest.BadFile, "INVALID_DURATION": metatest.BadFile, "INVALID_FRAME_RATE": metatest.BadFile,
		"INVALID_AUDIO_CHANNELS": metatest.BadFile, "INVALID_AUDIO_CHANNEL_LAYOUT": metatest.BadFile, "UNKNOWN": metatest.Refused,
	})
}
