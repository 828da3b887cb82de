// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/platformtest"
)

func TestContract(t *testing.T) {
	suite := platformtest.Suite{
		Name: "instagram",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return instagram.New(instagram.Config{APIURL: url + "/instagram"}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByItself,
	}
	suite.Run(t)
}
