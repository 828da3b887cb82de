// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that YouTube's API uses. An upload session's URL is the Location header of a response (Data API,
// guide "Resumable Uploads", step 3). The guide documents that URL's host only in an example, which uses the API's
// host, www.googleapis.com. Google serves its APIs on subdomains of googleapis.com ("Google Cloud APIs", service
// endpoints), and moves uploads between them.
var hosts = platforms.Hosts{
	Called: client.HostsOf(DefaultAPIURL, DefaultTokenURL),
	Named:  []string{"*.googleapis.com"},
}
