// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	before := noon.Add(-time.Hour)
	once := &Rollback{DetectedAt: before, Evidence: "once"}
	for name, tt := range map[string]struct {
		why             string
		cluster, bucket Count
		want            Count
		rewound         bool
	}{
		"a new installation":         {"neither the cluster nor the store has a count", Count{}, Count{}, Count{Number: 1, At: noon}, false},
		"regular":                    {"both stores have the same count", Count{Number: 7, At: before}, Count{Number: 7, At: before}, Count{Number: 8, At: noon}, false},
		"killed in between":          {"the cluster counts first", Count{Number: 8, At: before}, Count{Number: 7, At: before}, Count{Number: 9, At: noon}, false},
		"the bucket was unavailable": {"the cluster has the higher count", Count{Number: 70, At: before}, Count{Number: 7, At: before}, Count{Number: 71, At: noon}, false},
		"put back":                   {"the count of a running cluster never decreases", Count{Number: 6, At: before}, Count{Number: 7, At: noon}, Count{Number: 8, At: noon, LastRollback: &Rollback{From: before, DetectedAt: noon, Evidence: "the cluster has counted to 6, and the bucket to 7"}}, true},
		"put back to before the first count": {
			"its posts are of then",
			Count{},
			Count{Number: 7, At: before},
			Count{Number: 8, At: noon, LastRollback: &Rollback{DetectedAt: noon, Evidence: "the cluster has counted to 0, and the bucket to 7"}},
			true,
		},
		"after it was put back":    {"the rollback was recorded before", Count{Number: 7, LastRollback: once}, Count{Number: 7, LastRollback: once}, Count{Number: 8, At: noon, LastRollback: once}, false},
		"count lost in the bucket": {"the bucket lacks the latest count", Count{Number: 8, LastRollback: once}, Count{Number: 7}, Count{Number: 9, At: noon, LastRollback: once}, false},
		"put back twice": {
			"the later one counts",
			Count{Number: 6},
			Count{Number: 8, LastRollback: once},
			Count{Number: 9, At: noon, LastRollback: &Rollback{DetectedAt: noon, Evidence: "the cluster has counted to 6, and the bucket to 8"}},
			true,
		},
	} {
		got, rewound := next(tt.cluster, tt.bucket, noon)
		if diff := cmp.Diff(tt.want, got); diff != "" || rewound != tt.rewound {
			t.Errorf("%s (%s): rewound %t, %s", name, tt.why, rewound, diff)
		}
	}
}

func TestRevisionGap(t *testing.T) {
	for name, tt := range map[string]struct{ why, from, to, want string }{
		"on":               {"a cluster writes", "100", "2000100", ""},
		"no earlier count": {"the bucket has no earlier count", "", "100", ""},
		"no number":        {"Kubernetes lets a store name versions as it likes", "abc", "100", ""},
		"not a number":     {"unknown formats are ignored", "100", "abc", ""},
		"back":             {"etcd counts on, unless it was put back", "100", "99", "resourceVersions went back from 100 to 99"},
		"nearly a leap":    {"a cluster may have written as much", "100", "1000000099", ""},
		"a leap":           {"etcdutl skips revisions like this", "100", "1000000100", "resourceVersions leapt from 100 to 1000000100"},
		"the last leap":    {"etcd can reach this revision", "999999999999999", "1000000999999999", "resourceVersions leapt from 999999999999999 to 1000000999999999"},
		"microseconds":     {"the store counts microseconds, and an hour has passed", "1795435200000000", "1795438800000000", ""},
		"nanoseconds":      {"an hour or a minute may pass in such a store", "1795435200000000000", "1795435260000000000", ""},
		"back in time":     {"a store with timestamps does not go back either", "1795435260000000000", "1795435200000000000", "resourceVersions went back from 1795435260000000000 to 1795435200000000000"},
	} {
		if got := revisionGap(tt.from, tt.to); got != tt.want {
			t.Errorf("%s: %q, want %q (%s)", name, got, tt.want, tt.why)
		}
	}
}

func TestMostAdvanced(t *testing.T) {
	first, second := &Rollback{DetectedAt: noon}, &Rollback{DetectedAt: noon.Add(time.Minute)}
	for name, tt := range map[string]struct {
		why        string
		a, b, want Count
	}{
		"none":          {"neither store has a count yet", Count{}, Count{}, Count{}},
		"the same":      {"the counts are equal", Count{Number: 7, ResourceVersion: "9"}, Count{Number: 7, ResourceVersion: "9"}, Count{Number: 7, ResourceVersion: "9"}},
		"the second":    {"its resourceVersion is the newer one", Count{Number: 7, ResourceVersion: "9"}, Count{Number: 8, ResourceVersion: "10"}, Count{Number: 8, ResourceVersion: "10"}},
		"the first":     {"the first count's resourceVersion is newer", Count{Number: 8, ResourceVersion: "10"}, Count{Number: 7, ResourceVersion: "9"}, Count{Number: 8, ResourceVersion: "10"}},
		"known to one":  {"a recorded rollback must remain", Count{Number: 8}, Count{Number: 7, LastRollback: first}, Count{Number: 8, LastRollback: first}},
		"known to both": {"the later one is recorded", Count{Number: 8, LastRollback: first}, Count{Number: 7, LastRollback: second}, Count{Number: 8, LastRollback: second}},
	} {
		if diff := cmp.Diff(tt.want, mostAdvanced(tt.a, tt.b)); diff != "" {
			t.Errorf("%s (%s): %s", name, tt.why, diff)
		}
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "no count", "{}", `{"number":-1}`} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "not a count from Herald") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
