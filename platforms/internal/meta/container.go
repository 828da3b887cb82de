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

// ContainerState is how far a graph is with a container: what it was handed to publish,
// and what is not visible before that.
type ContainerState string

// The states of a container, as Threads and Instagram call them. Three say that it
// is not published (references, "status_code"): it is finished ("ready to be
// published"), failed ("failed to complete the publishing process"), or expired
// ("was not published within 24 hours").
const (
	StateInProgress ContainerState = "IN_PROGRESS"
	StateFinished   ContainerState = "FINISHED"
	StatePublished  ContainerState = "PUBLISHED"
	StateError      ContainerState = "ERROR"
	StateExpired    ContainerState = "EXPIRED"
	// StateUnread is ours: the graph shows no such container to this token. It may
	// have forgotten it, or fail to show what is there: from 23 to 26 May 2026
	// Instagram refused so to read any new container, and published them when told
	// (gitroomhq/postiz-app#1562).
	StateUnread ContainerState = "unread"
)

// parseState reads a state; false for a word that is none of a graph's.
func parseState(word string) (ContainerState, bool) {
	known := []ContainerState{StateInProgress, StateFinished, StatePublished, StateError, StateExpired}
	return ContainerState(word), slices.Contains(known, ContainerState(word))
}

// firstPause is how long to wait before a container is asked for again. Texts
// and pictures are ready at once, or nearly.
const firstPause = 300 * time.Millisecond

// fetchWithin is how long a graph may take to fetch a file.
const fetchWithin = 2 * time.Hour

// maxContainers is how many containers one preparation makes, if the graph fails
// to make one, and maxPaused how many if that may pass within moments.
const (
	maxContainers = 2
	maxPaused     = 3
)

// unreadFor is for how long one preparation asks again for new containers that
// cannot be read. After that they are taken for ready: what is not, the graph
// refuses to publish, which does no harm.
const unreadFor = 30 * time.Second

// Poll asks for a container until the graph is done with it, waiting twice as
// long from one time to the next, up to longest. ask reports whether the
// container is still in progress. The error is that of the context, if it ends
// first.
func Poll(ctx context.Context, clk clock.Clock, longest time.Duration, ask func() (inProgress bool)) error {
	for pause := firstPause; ask(); pause = min(2*pause, longest) {
		if err := client.Wait(ctx, clk, pause); err != nil {
			return err
		}
	}
	return nil
}

// Containers is a graph that publishes in two steps: it makes a container, and
// then makes it visible.
type Containers struct {
	Graph

	// CreateEdge and PublishEdge are the last segments of the account's paths
	// for the two steps.
	CreateEdge, PublishEdge string
	// CreateTimeout and PublishTimeout bound the two steps.
	CreateTimeout, PublishTimeout time.Duration
	// StatusFields are what a container is asked for.
	StatusFields string
	// ExplainFailure says what became of a container that cannot be published; why is the
	// graph's own word for that.
	ExplainFailure func(g *Graph, found ContainerState, why, about string) *Failure
	// Cache knows of containers what the graph does not tell.
	Cache *ContainerCache
}

// status is what a graph says of a container. Threads has the state in Status and
// the reason of a failure in Error; Instagram the state in Code, and what it is
// about in Status.
type status struct {
	Code   jsondoc.Text `json:"status_code"`
	Status jsondoc.Text `json:"status"`
	Error  jsondoc.Text `json:"error_message"`
}

// State asks how far the graph is with a container of a job, and why it failed.
func (c *Containers) State(ctx context.Context, job *platforms.Job, id string) (found ContainerState, why string, bad *Failure) {
	said, bad := Get[status](ctx, &c.Graph, "status", "/"+url.PathEscape(id)+"?fields="+c.StatusFields, job.Account.Token)
	switch {
	case bad != nil && bad.GraphError.Kind().OfRequest():
		return StateUnread, "", nil
	case bad != nil:
		return "", "", bad
	}
	word, reason := said.Code, said.Status
	if word == "" {
		word, reason = said.Status, said.Error
	}
	found, known := parseState(word.String())
	if !known {
		return "", "", NewFailure(platforms.Errorf(platforms.ClassUnknown, "%s did not say how far it is with the post", c.Name))
	}
	return found, reason.String(), nil
}

// Task is the preparation of one job.
type Task struct {
	*Containers

	Job platforms.Job
	// Items are the containers of a carousel's files, in their order, as far as
	// they were made.
	Items []string
	// LongestPause bounds the pauses between two questions about a container.
	LongestPause time.Duration
	// SaveWhileWaiting says that the container is noted again with each question:
	// what it becomes takes long.
	SaveWhileWaiting bool

	// unreadUntil is until when new containers that cannot be read are asked for
	// again; zero before the first question.
	unreadUntil time.Time
}

// NewTask begins the preparation of a job with the parts that exist already.
func (c *Containers) NewTask(job platforms.Job, longestPause time.Duration) *Task {
	return &Task{Containers: c, Job: job, Items: job.PartIDs(ValidID), LongestPause: longestPause}
}

// Create makes a container. about is what it shows.
func (t *Task) Create(ctx context.Context, form url.Values, about string) (string, *Failure) {
	body, bad := t.Call(ctx, client.Call{
		Action: "create", Path: t.AccountPath(&t.Job.Account, t.CreateEdge), Token: t.Job.Account.Token.Access,
		Body: client.Fields(form), Timeout: t.CreateTimeout,
	}, about)
	if bad != nil {
		if bad.GraphError.Kind() == KindLost {
			// The parts that the form names are made again.
			t.Items = nil
		}
		return "", bad
	}
	id := CreatedID(body)
	if id == "" {
		return "", NewFailure(platforms.Errorf(platforms.ClassUnknown, "%s took the post without saying under which id", t.Name))
	}
	t.Cache.recordCreated(id, t.Clock.Now())
	return id, nil
}

// pollState waits until the graph is done with a container, for as long as the
// context lasts. One that cannot be read is asked for again until the given time.
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
			// The caller may pass over notes that come soon.
			bad = t.SaveCheckpoint(ctx, id)
		}
		return bad == nil
	})
	if err != nil {
		bad = NewFailure(platforms.Errorf(platforms.ClassTransient, "%s is not done with preparing %s", t.Name, about).Because(err))
	}
	return found, why, bad
}

// Prepare returns a container that can be published: the earlier one, if that is
// still good, or else one that fresh makes. Errors are those of
// platforms.Preparer.
func (t *Task) Prepare(ctx context.Context, earlier string, fresh func(context.Context) (string, *Failure)) (string, *platforms.Error) {
	if ValidID(earlier) {
		switch found, _, bad := t.pollState(ctx, earlier, ThePost, time.Time{}); {
		case bad != nil:
			return "", bad.Error
		case found == StatePublished:
			return earlier, platforms.Errorf(platforms.ClassDuplicate, "%s shows the post already, by a call that was taken for lost", t.Name)
		case t.isGood(earlier, found):
			return earlier, nil
		}
	}
	for made := 1; ; made++ {
		id, bad := fresh(ctx)
		if bad == nil {
			return id, nil
		}
		most := maxContainers
		if bad.Pause > 0 {
			most = maxPaused
		}
		if !bad.Retryable || made >= most || client.Wait(ctx, t.Clock, bad.Pause) != nil {
			return "", bad.Error
		}
	}
}

// isGood reports whether a container that was made before can be published, by
// what its graph said of it.
func (t *Task) isGood(id string, found ContainerState) bool {
	now := t.Clock.Now()
	return found == StateFinished && !t.Cache.isStuck(id, now) || found == StateUnread && t.Cache.isNew(id, now)
}

// WaitReady waits for a container that was just made.
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

// Carousel makes the containers of the files that are missing, waits until the
// graph is done with all, and returns the form of the container around them.
// Each is noted as it comes: Instagram makes 400 containers a day for an
// account.
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

// item makes the container of one file of a carousel.
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

// FileURL makes an address from which the graph can fetch a file.
func FileURL(ctx context.Context, file *platforms.File) (string, *Failure) {
	address, err := file.Bytes.Address(ctx, fetchWithin)
	if err != nil {
		return "", NewFailure(file.Unreadable(err))
	}
	return address, nil
}

// SaveCheckpoint tells how far the preparation has come.
func (t *Task) SaveCheckpoint(ctx context.Context, checkpoint string) *Failure {
	if err := t.Job.SaveCheckpoint(ctx, checkpoint, ""); err != nil {
		return NewFailure(err)
	}
	return nil
}
