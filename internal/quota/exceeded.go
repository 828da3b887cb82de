// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Exceeded is a create that Kubernetes refused because of a ResourceQuota.
type Exceeded struct {
	// Quota is its name.
	Quota string
	// Kind is that of the objects that it counts, in the plural and without the group,
	// such as "posts"; the whole name of the resource where that is not Herald's.
	Kind        string
	Used, Limit int64
}

// countsOf begins the name by which a ResourceQuota counts the objects of a kind, and ofHerald
// ends it where the kind is Herald's.
const countsOf = "count/"

var ofHerald = "." + v1alpha1.GroupVersion.Group

// ResourceNameOf is the name by which a ResourceQuota counts the objects of one of Herald's kinds,
// in the plural.
func ResourceNameOf(kind string) corev1.ResourceName {
	return corev1.ResourceName(countsOf + kind + ofHerald)
}

// exceeded is what the API server's admission plugin ResourceQuota says; it has no code of
// its own. Each part lists what does not fit, separated by commas.
var exceeded = regexp.MustCompile(`exceeded quota: ([^\s,]+), requested: ([^=\s]+)=[^,\s]+(?:,\S+)?, used: [^=\s]+=(\d+)(?:,\S+)?, limited: [^=\s]+=(\d+)`)

// ParseExceeded tells what a ResourceQuota refused; false if the error is another.
func ParseExceeded(err error) (Exceeded, bool) {
	if !apierrors.IsForbidden(err) {
		return Exceeded{}, false
	}
	parts := exceeded.FindStringSubmatch(err.Error())
	if parts == nil {
		return Exceeded{}, false
	}
	e := Exceeded{Quota: parts[1], Kind: parts[2]}
	if counted, ok := strings.CutPrefix(e.Kind, countsOf); ok {
		e.Kind = strings.TrimSuffix(counted, ofHerald)
	}
	var errUsed, errLimit error
	e.Used, errUsed = strconv.ParseInt(parts[3], 10, 64)
	e.Limit, errLimit = strconv.ParseInt(parts[4], 10, 64)
	return e, errUsed == nil && errLimit == nil
}

// isQuotaUnknown reports whether Kubernetes refused a create because it has not counted yet what
// there is: Herald's kinds were installed a moment ago. A quota that was just made refuses
// nothing before.
func isQuotaUnknown(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota: ")
}

// quotaBackoff is how long a create waits until Kubernetes has counted: 5 seconds in all, of
// which it takes one as a rule.
var quotaBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: 800 * time.Millisecond, Steps: 10}

// CreateWithRetry creates something in a namespace, and waits where Kubernetes has not counted yet
// what there is. Such a create took no effect.
func CreateWithRetry[T any](ctx context.Context, create func() (T, error)) (made T, err error) {
	pause := quotaBackoff
	for range quotaBackoff.Steps {
		if made, err = create(); !isQuotaUnknown(err) {
			return made, err
		}
		select {
		case <-time.After(pause.Step()): //nolint:forbidigo // a request waits; its test runs in a bubble of time
		case <-ctx.Done():
			return made, err
		}
	}
	return made, err
}
