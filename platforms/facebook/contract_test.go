// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/platformtest"
)

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "facebook",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return facebook.New(facebook.Config{Config: platforms.Config{APIURL: url + "/facebook", WebURL: url + "/facebook"}}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.Never, Refusals: platformtest.GraphRefusals(),
		// The listing of a Page's posts is incomplete, and neither a text nor a photo post has an id before it is
		// published.
		Unprovable: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage},
	}
}

// TestContractInTwoSteps runs the contract for posts that are created unpublished: each one's state shows whether it is
// published.
func TestContractInTwoSteps(t *testing.T) {
	suite := platformtest.Suite{
		Name: "facebook",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return facebook.New(facebook.Config{Config: platforms.Config{APIURL: url + "/facebook", WebURL: url + "/facebook"}, TwoSteps: true}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.Never, Refusals: platformtest.GraphRefusals(),
		// Photos are checked while they are uploaded, and nothing is processed later.
		LateProcessing: true,
	}
	suite.Run(t)
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
