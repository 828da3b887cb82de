// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where Threads is called. It fetches files itself, and no address of an answer
// is called: of the address of the next page only the query counts (meta.List).
//
// Newer pages of Meta name graph.threads.com for the same calls ("App Access Tokens", 2
// July 2026; "Debug Access Token"). A firewall lets both through, so that the default can
// change, or apiURL be set, without it.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL, newerAPIURL)}

// newerAPIURL is the other name of DefaultAPIURL.
const newerAPIURL = "https://graph.threads.com"
