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

// Exceeded describes a create that Kubernetes rejected because of a ResourceQuota.
type Exceeded struct {
	// Quota is the ResourceQuota's name.
	Quota string
	// Kind is the kind of the counted objects, in the plural and without the group, such as "posts". For kinds of other
	// groups, it is the full resource name.
	Kind        string
	Used, Limit int64
}

// countsOf is the prefix of an object count in a ResourceQuota, and ofHerald is its suffix for Herald's kinds.
const countsOf = "count/"

var ofHerald = "." + v1alpha1.GroupVersion.Group

// ResourceNameOf returns the name of an object count in a ResourceQuota for one of Herald's kinds, given in the plural.
func ResourceNameOf(kind string) corev1.ResourceName {
	return corev1.ResourceName(countsOf + kind + ofHerald)
}

// exceeded matches the message of the API server's ResourceQuota admission plugin, which has no error code. Each part
// lists the exceeded resources, separated by commas.
var exceeded = regexp.MustCompile(`exceeded quota: ([^\s,]+), requested: ([^=\s]+)=[^,\s]+(?:,\S+)?, used: [^=\s]+=(\d+)(?:,\S+)?, limited: [^=\s]+=(\d+)`)

// ParseExceeded parses the error for an exceeded ResourceQuota. It returns false for any other error.
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

// isQuotaUnknown reports whether Kubernetes rejected a create because it has not counted the existing objects yet. This
// happens if Herald's kinds were installed a moment ago; a new quota rejects nothing until they have been counted.
func isQuotaUnknown(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota: ")
}

// quotaBackoff is the backoff for a create until Kubernetes has counted: 5 seconds in total. Counting usually takes one
// second.
var quotaBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: 800 * time.Millisecond, Steps: 10}

// CreateWithRetry creates an object, and retries until Kubernetes has counted the existing ones. A rejected create has
// no effect.
func CreateWithRetry[T any](ctx context.Context, create func() (T, error)) (created T, err error) {
	pause := quotaBackoff
	for range quotaBackoff.Steps {
		if created, err = create(); !isQuotaUnknown(err) {
			return created, err
		}
		select {
		case <-time.After(pause.Step()): //nolint:forbidigo // a request waits; its test runs in a bubble of time
		case <-ctx.Done():
			return created, err
		}
	}
	return created, err
}
