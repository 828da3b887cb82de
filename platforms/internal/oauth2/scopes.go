// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth2

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms"
)

// Scopes splits a list of scopes, which some platforms separate with commas.
func Scopes(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
}

// RequiredScopes are the scopes that an account must grant: at least one of each entry.
type RequiredScopes [][]string

// Check returns an error that lists the missing scopes, or nil if none is missing. name is the platform's name.
func (n RequiredScopes) Check(name, granted string) *platforms.Error {
	given := Scopes(granted)
	var missing []string
	for _, alternatives := range n {
		if !slices.ContainsFunc(alternatives, func(scope string) bool { return slices.Contains(given, scope) }) {
			missing = append(missing, alternatives[0])
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return platforms.Errorf(platforms.ClassReconnect, "%s did not grant the permission %s, which Herald needs", name, missing[0]).Advise(grantAll)
	default:
		last := len(missing) - 1
		return platforms.Errorf(platforms.ClassReconnect, "%s did not grant the permissions %s and %s, which Herald needs",
			name, strings.Join(missing[:last], ", "), missing[last]).Advise(grantAll)
	}
}

const grantAll = "connect the account again and leave all permissions switched on; if they are not offered, the administrator has to add them to the app"
