// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// shards validates the number of shards, and the settings that depend on it.
func (j *validator) shards(d *configv1alpha1.Delivery) {
	j.atLeast(1, map[string]int{"delivery.shards": d.Shards})
	if d.Shards > configv1alpha1.MaxShards {
		j.report("delivery.shards", fmt.Sprintf("%d is too large", d.Shards), fmt.Sprintf("write %d or less", configv1alpha1.MaxShards))
	}
	if d.Shards > 1 && d.ShareUploads {
		j.report("delivery.shareUploads", "with several shards, each manager already uploads for its own", "remove it, or set delivery.shards to 1")
	}
}
