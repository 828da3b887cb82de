// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// hosts are where TikTok is called. The address of an upload is upload_url of an answer.
// TikTok's documentation names no host of it but in examples, which are of two kinds:
// open-upload.tiktokapis.com (Content Posting API, reference "Direct Post") and
// upload.us.tiktokapis.com ("Media Transfer Guide"). They differ by region, so that what
// is common to them decides.
var hosts = platforms.Hosts{
	Called: client.HostsOf(DefaultAPIURL),
	Named:  []string{"*.tiktokapis.com"},
}
