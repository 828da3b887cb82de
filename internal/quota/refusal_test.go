// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/herald-social/herald/internal/quota"
)

func forbidden(words string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "social.herald.dev", Resource: "posts"}, "p", errors.New(words))
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   quota.Exceeded
		is     bool
	}{
		"Ours": {
			"kube-apiserver's own message",
			forbidden("exceeded quota: budget.social.herald.dev, requested: count/posts.social.herald.dev=1, used: count/posts.social.herald.dev=2000, limited: count/posts.social.herald.dev=2000"),
			quota.Exceeded{Quota: "budget.social.herald.dev", Kind: "posts", Used: 2000, Limit: 2000},
			true,
		},
		"Several": {
			"the first limit is reported",
			forbidden("exceeded quota: theirs, requested: count/posts.social.herald.dev=1,pods=1, used: count/posts.social.herald.dev=3,pods=7, limited: count/posts.social.herald.dev=2,pods=5"),
			quota.Exceeded{Quota: "theirs", Kind: "posts", Used: 3, Limit: 2},
			true,
		},
		"Foreign": {
			"unknown resources keep their names",
			forbidden("exceeded quota: theirs, requested: count/secrets=1, used: count/secrets=3, limited: count/secrets=3"),
			quota.Exceeded{Quota: "theirs", Kind: "secrets", Used: 3, Limit: 3},
			true,
		},
		"Unit":    {"quantities are not counts", forbidden("exceeded quota: q, requested: cpu=1, used: cpu=3500m, limited: cpu=4"), quota.Exceeded{}, false},
		"Unknown": {"no limit is exceeded", forbidden("status unknown for quota: q, resources: count/posts.social.herald.dev"), quota.Exceeded{}, false},
		"Rights":  {"another refusal", forbidden("User \"x\" cannot create resource"), quota.Exceeded{}, false},
		"Other":   {"a similar error of another type", errors.New("exceeded quota: q, requested: a=1, used: a=1, limited: a=1"), quota.Exceeded{}, false},
		"None":    {"no error", nil, quota.Exceeded{}, false},
	} {
		if got, is := quota.ParseExceeded(tc.err); is != tc.is || is && got != tc.want {
			t.Errorf("%s: %s: %+v %v, want %+v %v", name, tc.reason, got, is, tc.want, tc.is)
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	unknown := forbidden("status unknown for quota: budget.social.herald.dev, resources: count/posts.social.herald.dev")
	refused := forbidden("exceeded quota: q, requested: a=1, used: a=1, limited: a=1")
	for name, tc := range map[string]struct {
		reason  string
		answers []error
		tries   int
		want    error
	}{
		"Once":    {"usually one write suffices", []error{nil}, 1, nil},
		"Soon":    {"Kubernetes counts meanwhile", []error{unknown, unknown, nil}, 3, nil},
		"Refused": {"the first count was rejected", []error{unknown, refused}, 2, refused},
		"Another": {"other errors are returned", []error{refused}, 1, refused},
		"GivesUp": {"a request has no more time", []error{unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, nil}, 10, unknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries, began := 0, time.Now()
			_, err := quota.CreateWithRetry(t.Context(), func() (struct{}, error) {
				tries++
				return struct{}{}, tc.answers[tries-1]
			})
			if !errors.Is(err, tc.want) || tries != tc.tries {
				t.Errorf("%s: %s: error %v after %d tries, want %v after %d", name, tc.reason, err, tries, tc.want, tc.tries)
			}
			if took := time.Since(began); took > 7*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tries := 0
	_, err := quota.CreateWithRetry(ctx, func() (struct{}, error) { tries++; return struct{}{}, unknown })
	if tries != 1 || !errors.Is(err, unknown) {
		t.Errorf("a cancelled request was retried %d times: %v", tries, err)
	}
}
