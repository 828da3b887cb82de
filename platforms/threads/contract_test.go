// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads_test

import (
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/threads"
)

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "threads",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return threads.New(threads.Config{Config: platforms.Config{APIURL: url + "/threads"}}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByItself, TellsPostsLeft: true, Refusals: platformtest.GraphRefusals(),
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
