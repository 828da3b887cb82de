// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are the hosts that TikTok's API uses. Uploads go to the upload_url in a response. TikTok documents that URL's
// host only in examples, of which there are two kinds: open-upload.tiktokapis.com (Content Posting API, reference
// "Direct Post") and upload.us.tiktokapis.com ("Media Transfer Guide"). They differ by region, so Herald accepts their
// common domain.
var hosts = platforms.Hosts{
	Called: client.HostsOf(DefaultAPIURL),
	Named:  []string{"*.tiktokapis.com"},
}
