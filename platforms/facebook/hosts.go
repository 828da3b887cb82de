// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where Facebook is called. Photos go to the host of the graph, and no address
// of an answer is called: of the address of the next page only the query counts
// (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
