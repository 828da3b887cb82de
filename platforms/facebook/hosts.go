// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that Facebook's API uses. Photos are uploaded to the host of the graph. No address from an answer
// is called: only the query of the next page's address is used (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
