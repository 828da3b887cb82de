// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that Instagram's API uses: the graphs of its two logins, the host that exchanges codes, and the
// host for video uploads, whose path is derived from the container's id ("Resumable Upload Protocol"). The upload URL
// in the response is not used, and no other URL from a response is called: only the query of the next page's URL is
// used (meta.List).
var hosts = platforms.Hosts{Called: client.HostsOf(DefaultAPIURL, DefaultFacebookURL, DefaultTokenURL, DefaultUploadURL)}
