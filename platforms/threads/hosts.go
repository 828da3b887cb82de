// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that the Threads API uses. Threads fetches files itself. No URL from a response is called: only
// the query of the next page's URL is used (meta.List).
//
// Newer pages of Meta document graph.threads.com for the same calls ("App Access Tokens", 2 July 2026; "Debug Access
// Token"). Both are listed, so the default can change without requiring a new firewall rule.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL, newerAPIURL)}

// newerAPIURL is the newer address of the API at DefaultAPIURL.
const newerAPIURL = "https://graph.threads.com"
