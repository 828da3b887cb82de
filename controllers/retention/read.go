// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

const (
	fieldFinished   = "status.finished"
	fieldFinishedOn = "status.finishedOn"
	// maxDays limits the days that a review excludes: each is a term of the field selector.
	maxDays = 100
)

type found struct {
	due []entry
	// undated are posts that an older version finished without recording the day.
	undated []string
}

func (s *Sweeper) day(ctx context.Context, a *agenda, namespace, day string) (found, error) {
	return s.read(ctx, a, namespace, fields.AndSelectors(
		fields.OneTermEqualSelector(fieldFinished, "true"), fields.OneTermEqualSelector(fieldFinishedOn, day)))
}

// review reads a team's finished posts without a day, and those of days whose posts should all have been archived.
func (s *Sweeper) review(ctx context.Context, a *agenda, namespace string, now time.Time) (found, error) {
	terms := []fields.Selector{fields.OneTermEqualSelector(fieldFinished, "true")}
	first := dayOf(now.Add(-a.times.InCluster))
	// A clock that is ahead may have recorded tomorrow.
	at := now.Add(24 * time.Hour)
	for range maxDays {
		if dayOf(at) < first {
			break
		}
		terms = append(terms, fields.OneTermNotEqualSelector(fieldFinishedOn, dayOf(at)))
		at = at.Add(-24 * time.Hour)
	}
	return s.read(ctx, a, namespace, fields.AndSelectors(terms...))
}

func (s *Sweeper) read(ctx context.Context, a *agenda, namespace string, which fields.Selector) (out found, err error) {
	for _, labelled := range removable(a.times.Applied) {
		err = errors.Join(err, s.readSelected(ctx, a, &out, client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: which}, client.MatchingLabelsSelector{Selector: labelled}))
	}
	return out, err
}

// removable returns selectors that together select exactly the posts that retention.Times.Evicts, each once.
func removable(applied bool) []labels.Selector {
	if applied {
		return []labels.Selector{labels.Everything()}
	}
	requires := func(key string, operator selection.Operator) labels.Requirement {
		requirement, err := labels.NewRequirement(key, operator, nil)
		if err != nil {
			panic(err) // the keys are constants
		}
		return *requirement
	}
	return []labels.Selector{
		labels.NewSelector().Add(requires(v1alpha1.OriginLabel, selection.Exists)),
		labels.NewSelector().Add(requires(v1alpha1.OriginLabel, selection.DoesNotExist), requires(v1alpha1.ScheduleLabel, selection.Exists)),
	}
}

func (s *Sweeper) readSelected(ctx context.Context, a *agenda, out *found, namespace client.InNamespace, which ...client.ListOption) error {
	return kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
		var posts v1alpha1.PostList
		if err := s.APIReader.List(ctx, &posts, append(which, namespace, client.Limit(page.Limit), client.Continue(page.Continue))...); err != nil {
			return "", fmt.Errorf("cannot list the finished posts of namespace %q: %w", namespace, err)
		}
		for i := range posts.Items {
			switch post := &posts.Items[i]; {
			case !post.Status.Finished || !a.times.Evicts(post.Labels):
			case post.Status.FinishedAt == nil:
				out.undated = append(out.undated, post.Name)
			default:
				out.due = append(out.due, entry{name: post.Name, at: s.evictAt(post, a.times)})
			}
		}
		return posts.Continue, nil
	})
}
