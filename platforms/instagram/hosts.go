// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where Instagram is called: the graphs of its two logins, where codes are
// exchanged, and where videos go, which is a host of its own with a path that follows
// from the id of the container ("Resumable Upload Protocol"). The address that an answer
// names of it is not used, and no other one of an answer is called: of the address of the
// next page only the query counts (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL, DefaultFacebookURL, DefaultTokenURL, DefaultUploadURL)}
