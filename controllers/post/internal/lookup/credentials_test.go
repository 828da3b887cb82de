// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
)

// TestUnusableCredentials checks that the platform is not queried with unusable credentials, and that the kind of
// problem determines the retries. Lookups has no Preparer here, so any query would panic.
func TestUnusableCredentials(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		err    error
		class  platforms.Class
		last   bool
	}{
		{
			"what replaced them may be another account's, which would not show the post",
			&credentials.Error{Reason: credentials.Unverified, Message: "not checked yet"}, platforms.ClassTransient, false,
		},
		{"a person has to correct them", &credentials.Error{Reason: credentials.Invalid, Message: "no token"}, platforms.ClassReconnect, false},
		{
			"they are gone",
			&credentials.Error{Reason: credentials.NotFound, Message: "no Secret", Err: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "page")},
			platforms.ClassReconnect, true,
		},
	} {
		l := &Lookups{
			Clock: clocktesting.NewFakePassiveClock(started),
			Token: func(context.Context, *v1alpha1.Connection) (platforms.Token, error) { return platforms.Token{}, tc.err },
		}
		f := &delivery.Facts{
			Post: working("self", "hello"), Now: started.Add(time.Minute), Platforms: platforms.Registry{v1alpha1.PlatformX: finding{}},
			Connections: map[string]*v1alpha1.Connection{"page": {
				ObjectMeta: metav1.ObjectMeta{Name: "page"}, Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "4711"},
			}},
		}
		a := l.Lookup(t.Context(), f, []int{0})[0]
		if a.Err == nil || a.Err.Class != tc.class || a.Last != tc.last || !strings.Contains(a.Err.Problem, tc.err.Error()) {
			t.Errorf("%s: got %+v, last %t; want %s, last %t", tc.reason, a.Err, a.Last, tc.class, tc.last)
		}
	}
}
