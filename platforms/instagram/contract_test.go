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

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	site := url + "/instagram"
	return instagram.New(instagram.Config{
		Config:      platforms.Config{APIURL: site},
		FacebookURL: site + "/graph.facebook.com", UploadURL: site + "/rupload.facebook.com",
	}, transport.New(transport.Options{}))
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{Name: "instagram", New: newAt, Renewal: platformtest.ByItself, TellsPostsLeft: true, Refusals: platformtest.GraphRefusals()}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }

// TestContractLinked runs the contract for accounts that are connected through their Page.
func TestContractLinked(t *testing.T) {
	suite := platformtest.Suite{
		Name: "instagram", New: newAt, Renewal: platformtest.Never, TellsPostsLeft: true, Account: map[string]any{"login": "facebook"},
	}
	suite.Run(t)
}
