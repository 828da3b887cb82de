// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/x"
)

func TestContract(t *testing.T) {
	suite := platformtest.Suite{
		Name: "x",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return x.New(x.Config{APIURL: url + "/x", WebURL: url + "/x", ClientID: "herald"}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByRotation,
		Resumes: 8 << 20,
	}
	suite.Run(t)
}
