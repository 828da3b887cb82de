// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
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
	// mostDays limits the days that a review excludes: each is a term of the field selector.
	mostDays = 100
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

// review reads a team's posts that were finished on an unknown day, or on one whose posts should all have left.
func (s *Sweeper) review(ctx context.Context, a *agenda, namespace string, now time.Time) (found, error) {
	terms := []fields.Selector{fields.OneTermEqualSelector(fieldFinished, "true")}
	first := dayOf(now.Add(-a.times.InCluster))
	// A clock that is ahead may have recorded tomorrow.
	at := now.Add(24 * time.Hour)
	for range mostDays {
		if dayOf(at) < first {
			break
		}
		terms = append(terms, fields.OneTermNotEqualSelector(fieldFinishedOn, dayOf(at)))
		at = at.Add(-24 * time.Hour)
	}
	return s.read(ctx, a, namespace, fields.AndSelectors(terms...))
}

func (s *Sweeper) read(ctx context.Context, a *agenda, namespace string, which fields.Selector) (found, error) {
	var out found
	options := []client.ListOption{client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: which}}
	if !a.times.Applied {
		made, err := labels.NewRequirement(v1alpha1.OriginLabel, selection.Exists, nil)
		if err != nil {
			return out, fmt.Errorf("cannot select the posts to remove: %w", err)
		}
		options = append(options, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*made)})
	}
	err := kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
		var posts v1alpha1.PostList
		if err := s.APIReader.List(ctx, &posts, append(options, client.Limit(page.Limit), client.Continue(page.Continue))...); err != nil {
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
	return out, err
}
