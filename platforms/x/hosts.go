// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where X is called. Uploads go to the host of the API, under ids that X names
// ("Upload media", API v2): no address of an answer is called.
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL)}
