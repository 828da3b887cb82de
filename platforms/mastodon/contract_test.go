// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon_test

import (
	"fmt"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/mastodon"
	"github.com/herald-social/herald/platforms/platformtest"
)

func newAt(t *testing.T, url string) platforms.Platform {
	t.Helper()
	return mastodon.New(mastodon.Config{APIURL: url + "/mastodon"}, transport.New(transport.Options{}))
}

// refusals returns Mastodon's documented errors, and one in another language.
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for text, status := range map[string]int{
		"The access token is invalid": 401, "This action is outside the authorized scopes": 403, "Your login is currently disabled": 403,
		"Record not found": 404, "The post you are trying to reply to does not appear to exist.": 404, "Gone": 410,
		"Validation failed: Text can't be blank": 422, "Validation failed: Text character limit of 500 exceeded": 422,
		"Validation failed: Media 1 not found or already attached to another post": 422, "Validierung fehlgeschlagen: Text darf nicht leer sein": 422,
		"Cannot attach files that have not finished processing. Try again in a moment!": 422, "Too many requests": 429,
		"There was a temporary problem serving your request, please try again": 503,
	} {
		out[fmt.Sprintf("%d %s", status, text)] = platformtest.Answer{Status: status, Body: map[string]any{"error": text}}
	}
	return out
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "mastodon", New: newAt, Renewal: platformtest.Never, Refusals: refusals(),
		AltTexts: []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo}, MaxAltText: 1500,
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
