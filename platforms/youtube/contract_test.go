// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/youtube"
)

func TestContract(t *testing.T) {
	suite := platformtest.Suite{
		Name: "youtube",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return youtube.New(youtube.Config{APIURL: url + "/youtube", WebURL: url + "/youtube", ClientID: "herald", ClientSecret: func() string { return "secret" }}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByRefreshToken,
		// YouTube takes no angle brackets.
		Refuses:        []string{"punctuation"},
		SilentLimits:   true,
		LateProcessing: true,
		Resumes:        4 << 20,
	}
	suite.Run(t)
}
