// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// maxContainers is how many containers one preparation makes, if Instagram
// fails to make one.
const maxContainers = 2

// partUpload precedes, in a checkpoint, a container that waits for the bytes of
// its video. A whole checkpoint is the id of the container, and one of a carousel
// that is not complete names the containers of its images, as far as they were made.
const partUpload = "upload:"

const (
	msgVisible = "Instagram shows the post already, by a call that was taken for lost"
	msgNoMedia = "Instagram takes no post without an image or a video; add one"
)

// Prepares says that everything is published from a container.
func (*Platform) Prepares(platforms.Content) bool { return true }

// Prepare makes a container for the job and waits until Instagram is done with
// it. One that was made before is used again, and so are the parts of one.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if len(job.Content.Media) == 0 {
		return "", platforms.Errorf(platforms.ClassPermanent, msgNoMedia)
	}
	t := p.task(job)
	id, done, bad := t.earlier(ctx)
	if bad != nil {
		return id, bad.Error
	}
	if done {
		return id, nil
	}
	for range maxContainers {
		if id, bad = t.fresh(ctx); bad == nil {
			return id, nil
		}
		if !bad.again {
			break
		}
	}
	return "", bad.Error
}

// earlier uses what an earlier preparation has made: done says that nothing is
// left to do. What is no good any more is made anew.
func (t *task) earlier(ctx context.Context) (id string, done bool, bad *failure) {
	part := t.job.Checkpoint
	t.items = t.job.PartIDs(meta.ValidID)
	switch {
	case meta.ValidID(part):
		id = part
	case strings.HasPrefix(part, partUpload) && t.isVideo():
		if id = strings.TrimPrefix(part, partUpload); !meta.ValidID(id) {
			return "", false, nil
		}
		found, _, bad := t.state(ctx, id)
		if bad == nil && found == meta.StateInProgress {
			bad = t.fill(ctx, id)
		}
		if bad != nil && !bad.again {
			return "", false, bad
		}
		if bad != nil {
			return "", false, nil
		}
	default:
		return "", false, nil
	}
	found, _, bad := t.await(ctx, id, thePost)
	switch {
	case bad != nil:
		return "", false, bad
	case found == meta.StatePublished:
		return id, false, because(platforms.ClassDuplicate, msgVisible)
	default:
		return id, found == meta.StateFinished, nil
	}
}

// fresh makes a container and waits for it.
func (t *task) fresh(ctx context.Context) (string, *failure) {
	media := t.job.Content.Media
	switch {
	case len(media) > 1:
		return t.carousel(ctx)
	case !t.isVideo():
		return t.picture(ctx)
	default:
		return t.video(ctx)
	}
}

func (t *task) picture(ctx context.Context) (string, *failure) {
	file := &t.job.Content.Media[0]
	form, bad := image(ctx, file)
	if bad != nil {
		return "", bad
	}
	t.caption(form)
	id, bad := t.create(ctx, form, theFile(file))
	if bad == nil {
		bad = t.ready(ctx, id, theFile(file))
	}
	return id, bad
}

// video makes the container of a reel. With Facebook's login its bytes are
// uploaded; Instagram's has no uploads.
func (t *task) video(ctx context.Context) (string, *failure) {
	upload := t.host.login == FacebookLogin
	form, bad := t.reel(ctx, upload)
	if bad != nil {
		return "", bad
	}
	about := theFile(&t.job.Content.Media[0])
	id, bad := t.create(ctx, form, about)
	if bad != nil {
		return "", bad
	}
	if upload {
		if bad := t.note(ctx, partUpload+id); bad != nil {
			return "", bad
		}
		if bad := t.fill(ctx, id); bad != nil {
			return "", bad
		}
	}
	if bad := t.note(ctx, id); bad != nil {
		return "", bad
	}
	return id, t.ready(ctx, id, about)
}

// carousel makes a container for each image, and one around them.
func (t *task) carousel(ctx context.Context) (string, *failure) {
	if bad := t.children(ctx); bad != nil {
		return "", bad
	}
	form := map[string][]string{"media_type": {"CAROUSEL"}, "children": {strings.Join(t.items, ",")}}
	t.caption(form)
	id, bad := t.create(ctx, form, thePost)
	if bad == nil {
		bad = t.ready(ctx, id, thePost)
	}
	return id, bad
}

// children makes the containers of a carousel's images that are missing, and
// waits until Instagram is done with all. Each is noted as it comes: Instagram
// makes 400 containers a day for an account.
func (t *task) children(ctx context.Context) *failure {
	media := t.job.Content.Media
	good := make([]bool, len(media))
	for i := range media {
		about := theFile(&media[i])
		if i < len(t.items) {
			found, _, bad := t.await(ctx, t.items[i], about)
			if bad != nil {
				return bad
			}
			if good[i] = found == meta.StateFinished; good[i] {
				continue
			}
		}
		form, bad := image(ctx, &media[i])
		if bad != nil {
			return bad
		}
		form.Set("is_carousel_item", "true")
		id, bad := t.create(ctx, form, about)
		if bad != nil {
			return bad
		}
		if i < len(t.items) {
			t.items[i] = id
		} else {
			t.items = append(t.items, id)
		}
		if bad := t.note(ctx, platforms.JoinPartIDs(t.items)); bad != nil {
			return bad
		}
	}
	for i, id := range t.items {
		if good[i] {
			continue
		}
		if bad := t.ready(ctx, id, theFile(&media[i])); bad != nil {
			return bad
		}
	}
	return nil
}

// note tells how far the preparation has come.
func (t *task) note(ctx context.Context, checkpoint string) *failure {
	if err := t.job.Note(ctx, checkpoint, ""); err != nil {
		return failed(err)
	}
	return nil
}
