// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// ContainerState is the state of a container: content uploaded for publishing, which is invisible until then.
type ContainerState string

// The container states on Threads and Instagram. Three of them mean that it is not published (references,
// "status_code"): finished ("ready to be published"), failed ("failed to complete the publishing process"), and expired
// ("was not published within 24 hours").
const (
	StateInProgress ContainerState = "IN_PROGRESS"
	StateFinished   ContainerState = "FINISHED"
	StatePublished  ContainerState = "PUBLISHED"
	StateError      ContainerState = "ERROR"
	StateExpired    ContainerState = "EXPIRED"
	// StateUnread is Herald's own state: the graph does not return the container to this token. The container may
	// have expired, or the graph may fail to return one that exists: from 23 to 26 May 2026 Instagram refused to
	// read any new container, but published them (gitroomhq/postiz-app#1562).
	StateUnread ContainerState = "unread"
)

// parseState parses a state. It returns false for an unknown one.
func parseState(word string) (ContainerState, bool) {
	known := []ContainerState{StateInProgress, StateFinished, StatePublished, StateError, StateExpired}
	return ContainerState(word), slices.Contains(known, ContainerState(word))
}

// firstPause is the first pause between polls of a container. Text and images are ready almost immediately.
const firstPause = 300 * time.Millisecond

// fetchTimeout is how long a graph has to fetch a file.
const fetchTimeout = 2 * time.Hour

// maxContainers is the maximum number of containers that one preparation creates if the graph fails to process them,
// and maxPaused the maximum if the error is likely to pass within moments.
const (
	maxContainers = 2
	maxPaused     = 3
)

// unreadFor is how long one preparation polls new containers that cannot be read. After that, they count as ready: if
// one is not ready, the graph refuses to publish it, which does no harm.
const unreadFor = 30 * time.Second

// Poll polls a container until the graph has processed it. The pause doubles each time, up to longest. ask reports
// whether processing is still in progress. If the context ends first, Poll returns the context's cause.
func Poll(ctx context.Context, clk clock.Clock, longest time.Duration, ask func() (inProgress bool)) error {
	for pause := firstPause; ask(); pause = min(2*pause, longest) {
		if err := client.Wait(ctx, clk, pause); err != nil {
			return err
		}
	}
	return nil
}

// Containers is a graph that publishes in two steps: it creates a container and then makes it visible.
type Containers struct {
	Graph

	// CreateEdge and PublishEdge are the last path segments of the two steps, under the account.
	CreateEdge, PublishEdge       string
	CreateTimeout, PublishTimeout time.Duration
	// StatusFields are the container fields to request.
	StatusFields string
	// ExplainFailure returns the failure for a container that cannot be published. why is the graph's reason.
	ExplainFailure func(g *Graph, found ContainerState, why, about string) *Failure
	// Cache holds facts about containers that the graph does not return.
	Cache *ContainerCache
}

// status is a container's status as returned by the graph. Threads puts the state in Status and the reason for a
// failure in Error; Instagram puts the state in Code and its description in Status.
type status struct {
	Code   jsondoc.Text `json:"status_code"`
	Status jsondoc.Text `json:"status"`
	Error  jsondoc.Text `json:"error_message"`
}

// State returns the state of a job's container and the reason for its failure.
func (c *Containers) State(ctx context.Context, job *platforms.Job, id string) (found ContainerState, why string, bad *Failure) {
	container, bad := Get[status](ctx, &c.Graph, "status", "/"+url.PathEscape(id)+"?fields="+c.StatusFields, job.Account.Token)
	switch {
	case bad != nil && bad.GraphError.Kind().OfRequest():
		return StateUnread, "", nil
	case bad != nil:
		return "", "", bad
	}
	word, reason := container.Code, container.Status
	if word == "" {
		word, reason = container.Status, container.Error
	}
	found, known := parseState(word.String())
	if !known {
		return "", "", NewFailure(platforms.Errorf(platforms.ClassUnknown, "%s did not report the state of the post", c.Name))
	}
	return found, reason.String(), nil
}

// Task prepares one job.
type Task struct {
	*Containers

	Job platforms.Job
	// Items are the containers created so far for a carousel's files, in order.
	Items []string
	// LongestPause is the longest pause between two polls of a container.
	LongestPause time.Duration
	// SaveWhileWaiting stores the checkpoint again at each poll, for containers that take long to process.
	SaveWhileWaiting bool

	// unreadUntil is the deadline for polling new containers that cannot be read; zero before the first poll.
	unreadUntil time.Time
}

// NewTask returns the Task for a job, with the parts that already exist.
func (c *Containers) NewTask(job platforms.Job, longestPause time.Duration) *Task {
	return &Task{Containers: c, Job: job, Items: job.PartIDs(ValidID), LongestPause: longestPause}
}

// Create creates a container. about describes its content in error messages.
func (t *Task) Create(ctx context.Context, form url.Values, about string) (string, *Failure) {
	body, bad := t.Call(ctx, client.Call{
		Action: "create", Path: t.AccountPath(&t.Job.Account, t.CreateEdge), Token: t.Job.Account.Token.Access,
		Body: client.Fields(form), Timeout: t.CreateTimeout,
	}, about)
	if bad != nil {
		if bad.GraphError.Kind() == KindLost {
			// The form refers to the old parts, so they must be created again.
			t.Items = nil
		}
		return "", bad
	}
	id := CreatedID(body)
	if id == "" {
		return "", NewFailure(platforms.Errorf(platforms.ClassUnknown, "%s accepted the post without returning its id", t.Name))
	}
	t.Cache.recordCreated(id, t.Clock.Now())
	return id, nil
}

// pollState polls a container until it is processed or the context ends. A container that cannot be read is polled
// until unreadUntil.
func (t *Task) pollState(ctx context.Context, id, about string, unreadUntil time.Time) (found ContainerState, why string, bad *Failure) {
	err := Poll(ctx, t.Clock, t.LongestPause, func() bool {
		found, why, bad = t.State(ctx, &t.Job, id)
		switch {
		case bad == nil && found == StateUnread:
			return t.Clock.Now().Before(unreadUntil)
		case bad != nil || found != StateInProgress:
			return false
		}
		if t.SaveWhileWaiting {
			// The caller may drop checkpoints that follow each other quickly.
			bad = t.SaveCheckpoint(ctx, id)
		}
		return bad == nil
	})
	if err != nil {
		bad = NewFailure(platforms.Errorf(platforms.ClassTransient, "%s has not finished preparing %s", t.Name, about).Because(err))
	}
	return found, why, bad
}

// Prepare returns a container that can be published: the earlier one if it is still valid, and otherwise a new one
// created by fresh. Errors are as documented for platforms.Preparer.
func (t *Task) Prepare(ctx context.Context, earlier string, fresh func(context.Context) (string, *Failure)) (string, *platforms.Error) {
	if ValidID(earlier) {
		switch found, _, bad := t.pollState(ctx, earlier, ThePost, time.Time{}); {
		case bad != nil:
			return "", bad.Error
		case found == StatePublished:
			return earlier, platforms.Errorf(platforms.ClassDuplicate, "%s already shows the post, published by a call whose response was lost", t.Name)
		case t.isGood(earlier, found):
			return earlier, nil
		}
	}
	for attempt := 1; ; attempt++ {
		id, bad := fresh(ctx)
		if bad == nil {
			return id, nil
		}
		most := maxContainers
		if bad.Pause > 0 {
			most = maxPaused
		}
		if !bad.Retryable || attempt >= most || client.Wait(ctx, t.Clock, bad.Pause) != nil {
			return "", bad.Error
		}
	}
}

func (t *Task) isGood(id string, found ContainerState) bool {
	now := t.Clock.Now()
	return found == StateFinished && !t.Cache.isStuck(id, now) || found == StateUnread && t.Cache.isNew(id, now)
}

// WaitReady waits for a new container.
func (t *Task) WaitReady(ctx context.Context, id, about string) *Failure {
	if t.unreadUntil.IsZero() {
		t.unreadUntil = t.Clock.Now().Add(unreadFor)
	}
	found, why, bad := t.pollState(ctx, id, about, t.unreadUntil)
	if bad != nil || found == StateFinished || found == StateUnread {
		return bad
	}
	return t.ExplainFailure(&t.Graph, found, why, about)
}

// Carousel creates the files' missing containers, waits until the graph has processed all of them, and returns the form
// for the carousel's own container. Instagram limits an account to 400 containers a day, so each container is stored in
// the checkpoint as soon as it exists.
func (t *Task) Carousel(ctx context.Context, form func(context.Context, *platforms.File) (url.Values, *Failure)) (url.Values, *Failure) {
	media := t.Job.Content.Media
	good := make([]bool, len(media))
	for i := range media {
		about := TheFile(&media[i])
		if i < len(t.Items) {
			found, _, bad := t.pollState(ctx, t.Items[i], about, time.Time{})
			if bad != nil {
				return nil, bad
			}
			if good[i] = t.isGood(t.Items[i], found); good[i] {
				continue
			}
		}
		if bad := t.item(ctx, i, form); bad != nil {
			return nil, bad
		}
	}
	for i, id := range t.Items {
		if good[i] {
			continue
		}
		if bad := t.WaitReady(ctx, id, TheFile(&media[i])); bad != nil {
			return nil, bad
		}
	}
	return url.Values{"media_type": {"CAROUSEL"}, "children": {strings.Join(t.Items, ",")}}, nil
}

func (t *Task) item(ctx context.Context, i int, form func(context.Context, *platforms.File) (url.Values, *Failure)) *Failure {
	file := &t.Job.Content.Media[i]
	fields, bad := form(ctx, file)
	if bad != nil {
		return bad
	}
	fields.Set("is_carousel_item", "true")
	id, bad := t.Create(ctx, fields, TheFile(file))
	if bad != nil {
		return bad
	}
	t.Items = slices.Replace(t.Items, i, min(i+1, len(t.Items)), id)
	return t.SaveCheckpoint(ctx, platforms.JoinPartIDs(t.Items))
}

// FileURL returns a URL that the graph can fetch a file from.
func FileURL(ctx context.Context, file *platforms.File) (string, *Failure) {
	address, err := file.Bytes.Address(ctx, fetchTimeout)
	if err != nil {
		return "", NewFailure(file.Unreadable(err))
	}
	return address, nil
}

// SaveCheckpoint stores the preparation's progress.
func (t *Task) SaveCheckpoint(ctx context.Context, checkpoint string) *Failure {
	if err := t.Job.SaveCheckpoint(ctx, checkpoint, ""); err != nil {
		return NewFailure(err)
	}
	return nil
}
