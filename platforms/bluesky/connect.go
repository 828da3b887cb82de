// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"regexp"
	"strings"

	"github.com/herald-social/herald/platforms"
)

// appPassword matches app passwords in the form that servers generate (com.atproto.server.createAppPassword,
// packages/pds). The account's main password would also work, but grants full access to the account; it rarely has this
// form.
var appPassword = regexp.MustCompile(`^[a-z2-7]{4}(-[a-z2-7]{4}){3}$`)

// AppPasswords returns the address of the page where users create an app password.
func (p *Platform) AppPasswords() string { return p.webURL + "/settings/app-passwords" }

// PasswordToken returns the token for a handle or DID and an app password.
func (p *Platform) PasswordToken(name, password string) (platforms.Token, error) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "@")
	if !strings.Contains(name, ".") && !strings.HasPrefix(name, "did:") {
		return platforms.Token{}, platforms.Errorf(platforms.ClassPermanent, "the handle is not complete").
			Advise("write it with its domain, such as name.bsky.social")
	}
	password = strings.ToLower(strings.TrimSpace(password))
	if !appPassword.MatchString(password) {
		return platforms.Token{}, platforms.Errorf(platforms.ClassPermanent, "this is not an app password, which has the form abcd-efgh-ijkl-mnop").
			Advise("create one in Bluesky's settings, and do not use the account's own password here")
	}
	return platforms.Token{Access: name + ":" + password}, nil
}
