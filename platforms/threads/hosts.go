// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where Threads is called. It fetches files itself, and no address of an answer
// is called: of the address of the next page only the query counts (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
