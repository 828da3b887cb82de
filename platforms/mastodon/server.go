// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

var noServer = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
	"the connection does not name its account's server", "set spec.server of the Connection to the server's address, such as https://mastodon.example")

// hosts lists no hosts, because users choose the servers. No URL from a response is called.
var hosts = platforms.Hosts{Chosen: true}

// at returns the client for the account's server. Only public IP addresses are called, since a user chose the server.
func (p *Platform) at(token platforms.Token) (*client.Client, *platforms.Error) {
	api := p.api
	if api.BaseURL != "" {
		return &api, nil
	}
	u, err := url.Parse(token.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" || token.Server != "https://"+u.Host {
		failure := noServer
		return nil, &failure
	}
	api.BaseURL, api.Public = token.Server, true
	return &api, nil
}

// accountID returns Herald's id for an account. Servers number their accounts independently, so it includes the host:
// 109300000000000001@mastodon.example.
func accountID(id, server string) string {
	if host := strings.TrimPrefix(server, "https://"); host != "" {
		return id + "@" + host
	}
	return id
}

// localID returns an account's id on its server, and hostOf the server's host, which is empty in the sandbox.
func localID(account platforms.Account) string {
	id, _, _ := strings.Cut(account.ID, "@")
	return id
}

func hostOf(account platforms.Account) string {
	_, host, _ := strings.Cut(account.ID, "@")
	return host
}

// validID reports whether a string can be the id of a post or a file. Mastodon's ids are numbers; other servers with
// the same API also use letters (api/guidelines, "Handling IDs").
func validID(id string) bool { return text.Consists(id, 1, 64, text.Letters+text.Digits) }
