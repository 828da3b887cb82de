// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/tiktok"
)

func TestContract(t *testing.T) {
	suite := platformtest.Suite{
		Name: "tiktok",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return tiktok.New(tiktok.Config{APIURL: url + "/tiktok", ClientKey: "herald", ClientSecret: "secret"}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByRotation,
	}
	suite.Run(t)
}
