// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command client creates posts through the REST API from a pod in the end-to-end tests, as a careful client would. It
// uploads an image and a video, creates posts of every category at an even pace, retries failures with the same
// Idempotency-Key, and prints one JSON object for each post that was accepted.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// accepted is the output for a post.
type accepted struct {
	// ID is the post's ID. Marker is part of each caption.
	ID     string `json:"id"`
	Marker string `json:"marker"`
	// Tries is the number of requests.
	Tries int `json:"tries"`
	// Due is the due time.
	Due time.Time `json:"due"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// load is the configuration from the flags.
type load struct {
	posts  int
	over   time.Duration
	ahead  time.Duration
	marker string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var l load
	var a api
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.StringVar(&a.url, "url", "", "address of the REST API, ending in /api/v1")
	tokenFile := flags.String("token-file", "", "file with the key")
	store := flags.String("store", "", "host and port of the store, in the place of those that files are to go to")
	picture := flags.String("picture", "", "file with a JPEG")
	film := flags.String("film", "", "file with an MP4")
	flags.IntVar(&l.posts, "posts", 1, "how many posts to make")
	flags.DurationVar(&l.over, "over", 0, "how long to take for them")
	flags.DurationVar(&l.ahead, "ahead", 0, "how far ahead to schedule them; 0 publishes at once")
	flags.StringVar(&l.marker, "marker", "", "words that tell these posts from others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	token, err := os.ReadFile(*tokenFile)
	if err != nil {
		return fmt.Errorf("cannot read the key: %w", err)
	}
	a.token, a.store = string(token), storeAt(*store)
	c, err := a.prepare(ctx, *picture, *film)
	if err != nil {
		return err
	}
	return l.post(ctx, &a, c, json.NewEncoder(out))
}

// post creates each post at its time, regardless of the outcome of the others.
func (l load) post(ctx context.Context, a *api, c content, out *json.Encoder) error {
	var printing sync.Mutex
	var posting sync.WaitGroup
	failures := make(chan error, l.posts)
	tick := time.NewTicker(max(time.Millisecond, l.over/time.Duration(l.posts)))
	defer tick.Stop()
	for i := range l.posts {
		marker := fmt.Sprintf("%s %04d", l.marker, i)
		posting.Go(func() {
			done, err := a.create(ctx, c.body(i, marker), marker, l.ahead)
			if err != nil {
				failures <- fmt.Errorf("post %q: %w", marker, err)
				return
			}
			printing.Lock()
			defer printing.Unlock()
			if err := out.Encode(done); err != nil {
				failures <- err
			}
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	posting.Wait()
	select {
	case err := <-failures:
		return fmt.Errorf("%d posts were not accepted, among them %w", len(failures)+1, err)
	default:
		return nil
	}
}
