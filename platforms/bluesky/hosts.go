// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that Herald calls. The entryway forwards calls with app passwords to the accounts' servers. Calls
// with OAuth tokens go directly to the accounts' servers, whose addresses are in the directory. No other URL from a
// response is called.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL, DefaultDirectoryURL), Chosen: true}
