// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that X's API uses. Uploads go to the API's host and are identified by media ids ("Upload media",
// API v2), so no URL from a response is called.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
