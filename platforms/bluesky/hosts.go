// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that Herald calls. The entryway forwards to the accounts' own servers; no URL from a response is
// called.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
