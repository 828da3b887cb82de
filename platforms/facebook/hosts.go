// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that Facebook's API uses. Photos are uploaded to the graph's host. No URL from a response is
// called: only the query of the next page's URL is used (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
