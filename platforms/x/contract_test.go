// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x_test

import (
	"fmt"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/x"
)

// refusals returns X's responses to a post, by the codes of the old API and the types of the current one ("Response
// codes").
func refusals() map[string]platformtest.Answer {
	out := map[string]platformtest.Answer{}
	for code, status := range map[int]int{
		32: 401, 64: 403, 88: 429, 89: 401, 131: 500, 185: 403, 187: 403, 226: 403, 261: 403, 326: 403, 344: 403, 349: 403, 385: 403,
	} {
		out[fmt.Sprintf("code %d", code)] = platformtest.Answer{Status: status, Body: map[string]any{"errors": []any{map[string]any{"code": code, "message": "m"}}}}
	}
	for kind, status := range map[string]int{
		"client-forbidden": 403, "usage-capped": 429, "user-suspended": 403, "credits": 402, "not-authorized-for-resource": 403,
		"invalid-request": 400, "unsupported-authentication": 403, "resource-not-found": 404,
	} {
		out[kind] = platformtest.Answer{Status: status, Body: map[string]any{
			"type": "https://api.x.com/2/problems/" + kind, "title": "m", "detail": "m", "status": status,
		}}
	}
	return out
}

func contract() *platformtest.Suite {
	return &platformtest.Suite{
		Name: "x",
		New: func(t *testing.T, url string) platforms.Platform {
			t.Helper()
			return x.New(x.Config{APIURL: url + "/x", WebURL: url + "/x", ClientID: "herald"}, transport.New(transport.Options{}))
		},
		Renewal: platformtest.ByRotation,
		Resumes: 8 << 20, Refusals: refusals(),
	}
}

func TestContract(t *testing.T) { contract().Run(t) }

func FuzzPublishedAndRefused(f *testing.F) { contract().FuzzPublishedAndRefused(f) }
