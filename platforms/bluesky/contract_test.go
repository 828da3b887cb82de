// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
	"github.com/herald-social/herald/platforms/platformtest"
)

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return bluesky.New(bluesky.Config{Config: platforms.Config{APIURL: url + "/bluesky", WebURL: url + "/bluesky"}}, transport.New(transport.Options{}))
}

// didOf returns the n-th test DID. DIDs contain only the digits 2 to 7.
func didOf(n int64) string {
	const length, base = 24, 6
	number := strings.NewReplacer("0", "2", "1", "3", "2", "4", "3", "5", "4", "6", "5", "7").Replace(strconv.FormatInt(n, base))
	return "did:plc:" + strings.Repeat("a", length-len(number)) + number
}

// refusals returns the errors defined in the lexicons, and some that only the server defines.
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for name, status := range map[string]int{
		"InvalidRequest": 400, "InvalidSwap": 400, "BlobNotFound": 400, "InvalidMimeType": 400, "InvalidSize": 400, "ExpiredToken": 400, "InvalidToken": 400,
		"RecordNotFound": 400, "AuthenticationRequired": 401, "AuthMissing": 401, "AccountTakedown": 401, "AccountDeactivated": 401, "AccountNotFound": 403,
		"PayloadTooLarge": 413, "RateLimitExceeded": 429, "MethodNotImplemented": 501, "UpstreamFailure": 502, "NotEnoughResources": 503,
	} {
		out[fmt.Sprintf("%d %s", status, name)] = platformtest.Answer{Status: status, Body: map[string]any{"error": name, "message": "no"}}
	}
	return out
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "bluesky", New: newAt, AccountID: didOf, Renewal: platformtest.Never, Refusals: refusals(),
		Sessions: true, NoPicture: true, UploadsAgain: true, LateProcessing: true,
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo}, MaxAltText: -1,
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
