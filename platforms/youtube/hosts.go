// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where YouTube is called. The address of an upload's session is the header
// Location of an answer (Data API, guide "Resumable Uploads", step 3), which says nothing
// of its host but an example, that of the API: www.googleapis.com. Google serves its APIs
// under names of googleapis.com ("Google Cloud APIs", service endpoints), and moves
// uploads between them.
var hosts = platforms.Hosts{
	Called: client.HostsOf(DefaultAPIURL, DefaultTokenURL),
	Named:  []string{"*.googleapis.com"},
}
