// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that YouTube's API uses. The address of an upload session is the header Location of an answer
// (Data API, guide "Resumable Uploads", step 3). The guide documents its host only in an example, with the host of the
// API: www.googleapis.com. Google serves its APIs on subdomains of googleapis.com ("Google Cloud APIs", service
// endpoints), and moves uploads between them.
var hosts = platforms.Hosts{
	Called: client.HostsOf(DefaultAPIURL, DefaultTokenURL),
	Named:  []string{"*.googleapis.com"},
}
