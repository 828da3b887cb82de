// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Indices of Config.Statuses.
const (
	claimed = iota
	posted
	statuses
)

// deliver does only the minimum that delivering a post requires: it makes no decisions or checks, and would lose or
// repeat posts after a failure.
type deliver struct {
	config   Config
	client   rest.Interface
	platform *http.Client
	posts    []v1alpha1.Post
	next     atomic.Int64
	// prepared are the results of prepare, by post and target.
	prepared [][]string
}

// page is the page size of lists of posts.
const page = 500

func newDeliver(config Config) (*deliver, error) {
	if len(config.Statuses) != statuses {
		return nil, fmt.Errorf("deliver writes %d statuses, but the configuration has %d", statuses, len(config.Statuses))
	}
	client, err := postsClient(config.Kubeconfig)
	return &deliver{
		config: config, client: client,
		platform: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * config.InFlight}},
	}, err
}

// warm reads all posts: like Herald, the bare loop has them in memory when they are due.
func (d *deliver) warm(ctx context.Context) error {
	options := metav1.ListOptions{Limit: page}
	for {
		var list v1alpha1.PostList
		err := d.client.Get().Resource(postsResource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&list)
		if err != nil {
			return err
		}
		d.posts = append(d.posts, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if len(d.posts) != d.config.Count {
		return fmt.Errorf("there are %d posts, want %d", len(d.posts), d.config.Count)
	}
	d.prepared = make([][]string, len(d.posts))
	var next atomic.Int64
	return each(ctx, d.config.InFlight, d.config.Count, func(ctx context.Context, _ int) error {
		return d.prepare(ctx, int(next.Add(1)-1))
	})
}

// prepare makes a post's preparing calls, concurrently for all targets.
func (d *deliver) prepare(ctx context.Context, number int) error {
	post := &d.posts[number]
	prepared := make([]string, len(post.Spec.Targets))
	err := d.perTarget(ctx, post, func(ctx context.Context, i int, p platform) (err error) {
		prepared[i], err = p.prepare(ctx, &post.Spec.Targets[i], d.files(post))
		return err
	})
	d.prepared[number] = prepared
	return err
}

// files returns the URLs of a post's files.
func (d *deliver) files(post *v1alpha1.Post) []string {
	if post.Spec.Image == nil {
		return nil
	}
	addresses := make([]string, len(post.Spec.Image.MediaRefs))
	for i, media := range post.Spec.Image.MediaRefs {
		addresses[i] = d.config.Files[post.Namespace+"/"+media.Name]
	}
	return addresses
}

// perTarget calls work concurrently for every target of a post.
func (d *deliver) perTarget(ctx context.Context, post *v1alpha1.Post, work func(ctx context.Context, i int, p platform) error) error {
	group, inner := errgroup.WithContext(ctx)
	for i := range post.Spec.Targets {
		account := d.config.Accounts[post.Namespace+"/"+post.Spec.Targets[i].ConnectionRef.Name]
		group.Go(func() error { return work(inner, i, platform{account, d.platform}) })
	}
	return group.Wait()
}

func (d *deliver) run(ctx context.Context) error {
	return each(ctx, d.config.InFlight, d.config.Count, d.deliverOne)
}

func (d *deliver) deliverOne(ctx context.Context, _ int) error {
	number := int(d.next.Add(1) - 1)
	post := &d.posts[number]
	targets := len(post.Spec.Targets)
	attempts := make([]string, targets)
	for i := range attempts {
		attempts[i] = rand.Text()
	}
	post.Status = d.status(claimed, attempts)
	if len(post.Status.Targets) != targets {
		return fmt.Errorf("the sample has %d targets, the post %d", len(post.Status.Targets), targets)
	}
	if err := writeStatus(ctx, d.client, post); err != nil {
		return err
	}
	ids := make([]string, targets)
	err := d.perTarget(ctx, post, func(ctx context.Context, i int, p platform) (err error) {
		ids[i], err = p.publish(ctx, &post.Spec.Targets[i], d.prepared[number][i])
		return err
	})
	if err != nil {
		return err
	}
	post.Status = d.status(posted, attempts)
	for i := range post.Status.Targets {
		target := &post.Status.Targets[i]
		target.ExternalURL = strings.ReplaceAll(target.ExternalURL, target.ExternalID, ids[i])
		target.ExternalID = ids[i]
	}
	return writeStatus(ctx, d.client, post)
}

// status returns a copy of a sample with new ids.
func (d *deliver) status(which int, attempts []string) v1alpha1.PostStatus {
	status := *d.config.Statuses[which].DeepCopy()
	for i := range status.Targets {
		status.Targets[i].Attempt.ID = attempts[i]
	}
	return status
}
