// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// longestPause is how long to wait between two questions for a container
	// that is not ready.
	longestPause = 3 * time.Second

	// fetchWithin is how long Threads may take to fetch a file.
	fetchWithin = 2 * time.Hour

	// maxContainers is how many containers one preparation makes, if Threads
	// fails to make one.
	maxContainers = 2
)

const (
	msgNoContainer = "Threads took the post without saying under which id"
	msgNoState     = "Threads did not say how far it is with the post"
	msgNotReady    = "Threads is not done with preparing the post; Herald tries again"
	msgFailed      = "Threads could not prepare the post (%s); change it, or try again later"
	msgFileFailed  = "Threads could not prepare the file %q (%s); change it, or try again later"
	msgNoAddress   = "no address can be made from which Threads could fetch the file %q"
	msgVisible     = "Threads shows the post already, by a call that was taken for lost"
)

// Prepares says that everything is published from a container.
func (*Platform) Prepares(platforms.Content) bool { return true }

// Prepare makes a container for the job and waits until Threads is done with it.
// One that was made before for the same content is used again, and so are the
// parts of one: with a video Threads may take longer than one preparation lasts.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if id := job.Checkpoint; meta.ValidID(id) {
		switch found, _, err := p.awaitContainer(ctx, job, id); {
		case err != nil:
			return "", err
		case found == meta.StatePublished:
			return id, platforms.Errorf(platforms.ClassDuplicate, msgVisible)
		case found == meta.StateFinished:
			return id, nil
		}
	}
	word, items := "", job.PartIDs(meta.ValidID)
	for range maxContainers {
		id, err := p.createContainer(ctx, job, items)
		if err != nil {
			return "", err
		}
		items = nil
		if len(job.Content.Media) > 0 {
			if err := job.Note(ctx, id, ""); err != nil {
				return "", err
			}
		}
		found, why, err := p.awaitContainer(ctx, job, id)
		if err != nil {
			return "", err
		}
		if found == meta.StateFinished {
			return id, nil
		}
		word = why
	}
	return "", platforms.Errorf(platforms.ClassPermanent, msgFailed, word)
}

// createContainer makes what nobody sees: of several files, one container for
// each, as far as items does not name them, and one around them.
func (p *Platform) createContainer(ctx context.Context, job platforms.Job, items []string) (string, *platforms.Error) {
	media := job.Content.Media
	form := url.Values{"media_type": {"TEXT"}}
	switch {
	case len(media) == 1:
		var err *platforms.Error
		if form, err = showing(ctx, &media[0]); err != nil {
			return "", err
		}
	case len(media) > 1:
		children, err := p.createChildren(ctx, job, items)
		if err != nil {
			return "", err
		}
		form = url.Values{"media_type": {"CAROUSEL"}, "children": {strings.Join(children, ",")}}
	}
	if job.Content.Text != "" {
		form.Set("text", job.Content.Text)
	}
	if job.Content.InReplyTo != "" {
		form.Set("reply_to_id", job.Content.InReplyTo)
	}
	return p.create(ctx, job, form)
}

// createChildren makes a container for each file of a carousel, but for those of
// known that are good, and waits until Threads is done with all. Each is noted as
// it comes.
func (p *Platform) createChildren(ctx context.Context, job platforms.Job, known []string) ([]string, *platforms.Error) {
	media := job.Content.Media
	children := slices.Clone(known)
	good := make([]bool, len(media))
	for i := range media {
		if i < len(known) {
			found, _, err := p.awaitContainer(ctx, job, known[i])
			if err != nil {
				return nil, err
			}
			if good[i] = found == meta.StateFinished; good[i] {
				continue
			}
		}
		form, err := showing(ctx, &media[i])
		if err != nil {
			return nil, err
		}
		form.Set("is_carousel_item", "true")
		id, err := p.create(ctx, job, form)
		if err != nil {
			return nil, err
		}
		if i < len(known) {
			children[i] = id
		} else {
			children = append(children, id)
		}
		if err := job.Note(ctx, platforms.JoinPartIDs(children), ""); err != nil {
			return nil, err
		}
	}
	for i, id := range children {
		if good[i] {
			continue
		}
		found, why, err := p.awaitContainer(ctx, job, id)
		if err != nil {
			return nil, err
		}
		if found != meta.StateFinished {
			return nil, platforms.Errorf(platforms.ClassPermanent, msgFileFailed, media[i].Name, why)
		}
	}
	return children, nil
}

// showing is the form of a container that shows a file, which Threads fetches.
func showing(ctx context.Context, file *platforms.File) (url.Values, *platforms.Error) {
	address, err := file.Bytes.Address(ctx, fetchWithin)
	switch {
	case errors.Is(err, platforms.ErrFileChanged):
		return nil, file.Unreadable(err)
	case err != nil:
		return nil, &platforms.Error{Class: platforms.ClassTransient, Problem: fmt.Sprintf(msgNoAddress, file.Name), Err: err}
	case file.IsVideo():
		return url.Values{"media_type": {"VIDEO"}, "video_url": {address}}, nil
	default:
		return url.Values{"media_type": {"IMAGE"}, "image_url": {address}}, nil
	}
}

func (p *Platform) create(ctx context.Context, job platforms.Job, form url.Values) (string, *platforms.Error) {
	resp, failed := p.ask(ctx, meta.Call{
		Action: "create", Path: p.path("/" + url.PathEscape(job.Account.ID) + "/threads"), Token: job.Account.Token.Access,
		Form: form, Timeout: readTimeout,
	})
	if failed != nil {
		return "", failed.Error
	}
	doc, _ := jsondoc.Parse(resp.Body)
	id := doc.Text("id")
	if !meta.ValidID(id) {
		return "", platforms.Errorf(platforms.ClassUnknown, msgNoContainer)
	}
	return id, nil
}

// awaitContainer waits until Threads is done with a container, for as long as
// the context lasts, and returns its state and, for one that failed, why.
func (p *Platform) awaitContainer(ctx context.Context, job platforms.Job, id string) (found meta.State, why string, failed *platforms.Error) {
	err := meta.Await(ctx, p.config.Clock, longestPause, func() bool {
		found, why, failed = p.containerState(ctx, job, id)
		return failed == nil && found == meta.StateInProgress
	})
	if err != nil {
		return "", "", &platforms.Error{Class: platforms.ClassTransient, Problem: msgNotReady, Err: err}
	}
	return found, why, failed
}

// containerState asks for a container.
func (p *Platform) containerState(ctx context.Context, job platforms.Job, id string) (meta.State, string, *platforms.Error) {
	resp, failed := p.read(ctx, "status", p.path("/"+url.PathEscape(id)+"?fields=id,status,error_message"), job.Account.Token)
	if failed != nil {
		if failed.said.Kind() == meta.KindOther {
			return meta.StateGone, "it is gone", nil
		}
		return "", "", failed.Error
	}
	doc, _ := jsondoc.Parse(resp.Body)
	found, known := meta.ParseState(doc.Text("status"))
	if !known {
		return "", "", platforms.Errorf(platforms.ClassUnknown, msgNoState)
	}
	return found, word(doc.Text("error_message")), nil
}

// failureWord is the form of the documented words for why a container failed.
var failureWord = regexp.MustCompile(`^[A-Z][A-Z_]{2,40}$`)

// word returns a documented word as it is, and nothing else that Threads says.
func word(s string) string {
	if failureWord.MatchString(s) {
		return s
	}
	return "UNKNOWN"
}
