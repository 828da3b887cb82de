// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

func TestShareOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                        string
		shards, replicas, limit, want int
	}{
		"Divisible":     {reason: "each of two replicas holds two of four shards", shards: 4, replicas: 2, limit: 256, want: 128},
		"Indivisible":   {reason: "the replica with two of four shards stays within its limit", shards: 4, replicas: 3, limit: 256, want: 128},
		"OneEach":       {reason: "a replica with one shard needs its whole limit there", shards: 3, replicas: 3, limit: 32, want: 32},
		"MoreReplicas":  {reason: "a replica holds no more than one shard, and some hold none", shards: 2, replicas: 5, limit: 32, want: 32},
		"RoundedDown":   {reason: "three shards together stay within the limit", shards: 3, replicas: 1, limit: 32, want: 10},
		"Least":         {reason: "each shard delivers at least one post at a time, although its process then exceeds the limit", shards: 16, replicas: 2, limit: 4, want: 1},
		"UnknownNumber": {reason: "without a configured number of replicas, one replica may hold all shards", shards: 4, limit: 256, want: 64},
	} {
		t.Run(name, func(t *testing.T) {
			c := configv1alpha1.DefaultManager()
			c.Delivery.Shards, c.Replicas = tc.shards, tc.replicas
			if got := shareOf(c, tc.limit); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
