// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
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
			return tiktok.New(tiktok.Config{
				APIURL: url + "/tiktok", WebURL: url + "/tiktok", ClientKey: "herald", ClientSecret: func() string { return "secret" },
			}, transport.New(transport.Options{}))
		},
		Renewal:        platformtest.ByRotation,
		LateProcessing: true,
		Resumes:        6 << 20,
		// Photos take one call, beside a question, and what comes of it is all
		// that tells of it.
		First:      v1alpha1.CategoryVideo,
		Unprovable: []v1alpha1.Category{v1alpha1.CategoryImage},
		Bearerless: []v1alpha1.Category{v1alpha1.CategoryVideo},
	}
	suite.Run(t)
}
