// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Which status of Config.Statuses deliver writes when.
const (
	claimed = iota
	posted
	statuses
)

// deliver does for every post what delivery cannot do without, and nothing else: it decides nothing, checks nothing and
// would lose and repeat posts if anything went wrong.
type deliver struct {
	config   Config
	client   rest.Interface
	platform *http.Client
	posts    []v1alpha1.Post
	next     atomic.Int64
}

// page is how many posts are read at once.
const page = 500

func newDeliver(config Config) (*deliver, error) {
	if len(config.Statuses) != statuses {
		return nil, fmt.Errorf("deliver writes %d statuses", statuses)
	}
	client, err := postsClient(config.Kubeconfig)
	return &deliver{
		config: config, client: client,
		platform: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * config.InFlight}},
	}, err
}

// warm reads all posts: the bare loop knows them when their time comes, as Herald does.
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
	return nil
}

func (d *deliver) run(ctx context.Context) error {
	return each(ctx, d.config.InFlight, d.config.Count, d.deliverOne)
}

func (d *deliver) deliverOne(ctx context.Context, _ int) error {
	post := &d.posts[d.next.Add(1)-1]
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
	group, inner := errgroup.WithContext(ctx)
	for i := range targets {
		group.Go(func() error {
			var err error
			ids[i], err = d.publish(inner, post, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
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

// status is a sample with ids of its own.
func (d *deliver) status(which int, attempts []string) v1alpha1.PostStatus {
	status := *d.config.Statuses[which].DeepCopy()
	for i := range status.Targets {
		status.Targets[i].Attempt.ID = attempts[i]
	}
	return status
}

// publish makes the call that makes target i visible and returns the platform's id.
func (d *deliver) publish(ctx context.Context, post *v1alpha1.Post, i int) (string, error) {
	target := &post.Spec.Targets[i]
	body, err := json.Marshal(map[string]string{"text": target.Caption})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.config.PlatformURL+"/2/tweets", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+d.config.Tokens[post.Namespace+"/"+target.ConnectionRef.Name])
	response, err := d.platform.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("the platform answers %s: %s", response.Status, answer)
	}
	var created struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &created); err != nil {
		return "", err
	}
	if created.Data.ID == "" {
		return "", errors.New("the platform's answer holds no id")
	}
	return created.Data.ID, nil
}
