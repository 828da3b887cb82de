// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
)

const (
	// pageSize is the maximum value of maxResults in playlistItems.list.
	pageSize = 50
	// maxPages bounds one lookup. A project may upload 100 videos per day.
	maxPages = 10
)

// Lookup reads the video's state, using its id if that is known, and its upload session otherwise. Both results are
// certain. If the session has expired, or its URL is lost, Lookup searches the playlist of the channel's uploads for
// the title and the description, which cannot prove absence.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	if validID(job.OperationID) {
		return p.lookupVideo(ctx, &job, job.OperationID, true)
	}
	// A file whose Media was deleted has no size. A session must not be queried without the size, because it might
	// treat the query as the end of the video.
	if s, ok := p.sessionOf(&job); ok && len(job.Content.Media) == 1 && job.Content.Media[0].Size > 0 {
		size := job.Content.Media[0].Size
		at, failure := p.querySession(ctx, s, size)
		switch {
		case failure != nil:
			return platforms.LookupResult{}, failure
		case at.state == done:
			return p.lookupVideo(ctx, &job, at.video.ID.String(), false)
		case at.state == open && at.stored == size:
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgUnderway)
		case at.state == open:
			return platforms.LookupResult{Proof: true}, nil
		}
	}
	found, err := p.search(ctx, &job)
	if err != nil || found.Matches != 1 {
		return found, err
	}
	return p.listed(ctx, &job, found)
}

// search searches the playlist of the channel's uploads for the job's video, starting with the newest.
func (p *Platform) search(ctx context.Context, job *platforms.Job) (platforms.LookupResult, error) {
	playlist, failure := p.uploads(ctx, job.Account)
	if failure != nil {
		return platforms.LookupResult{}, failure
	}
	query := url.Values{"part": {"snippet,contentDetails"}, "playlistId": {playlist}, "maxResults": {strconv.Itoa(pageSize)}}
	matches := listing.Matches{}
	for range maxPages {
		page, failure := get[struct {
			Items []listedVideo `json:"items"`
			Next  jsondoc.Text  `json:"nextPageToken"`
		}](ctx, p, "list", "/youtube/v3/playlistItems?"+query.Encode(), job.Account.Token, p.classify)
		if failure != nil {
			return platforms.LookupResult{}, failure
		}
		if page.Items == nil {
			return platforms.LookupResult{}, p.API.NoList()
		}
		recent := false
		for i := range page.Items {
			video := &page.Items[i]
			id, at := video.Content.VideoID.String(), video.Snippet.PublishedAt.Time()
			if !validID(id) {
				return platforms.LookupResult{}, p.API.NoList()
			}
			recent = recent || !listing.IsOld(job, at, time.Second)
			if !listing.IsOld(job, at, time.Second) && video.fits(job) {
				matches.Add(listing.Match{ID: id, URL: p.videoURL(id), At: at})
			}
		}
		if page.Next == "" || !recent {
			return matches.Result(), nil
		}
		query.Set("pageToken", page.Next.String())
	}
	return platforms.LookupResult{}, p.API.TooManyPages()
}

type listedVideo struct {
	Snippet struct {
		Title       jsondoc.Text `json:"title"`
		Description jsondoc.Text `json:"description"`
		PublishedAt jsondoc.Text `json:"publishedAt"`
	} `json:"snippet"`
	Content struct {
		VideoID jsondoc.Text `json:"videoId"`
	} `json:"contentDetails"`
}

func (v *listedVideo) fits(job *platforms.Job) bool {
	return sameText(job.Content.Title, v.Snippet.Title) && sameText(job.Content.Text, v.Snippet.Description) &&
		!listing.BelongsToOther(job, v.Content.VideoID.String())
}

// sameText compares a sent text with a listed one, ignoring differences in whitespace and in how letters are composed.
func sameText(sent string, listed jsondoc.Text) bool {
	return text.Fold(sent) == text.Fold(listed.String())
}

func (p *Platform) uploads(ctx context.Context, account platforms.Account) (string, *platforms.Error) {
	channels, failure := get[struct {
		Items []struct {
			ID      jsondoc.Text `json:"id"`
			Content struct {
				Playlists struct {
					Uploads jsondoc.Text `json:"uploads"`
				} `json:"relatedPlaylists"`
			} `json:"contentDetails"`
		} `json:"items"`
	}](ctx, p, "identify", "/youtube/v3/channels?part=contentDetails&mine=true", account.Token, p.classify)
	if failure != nil {
		return "", failure
	}
	for _, channel := range channels.Items {
		if playlist := channel.Content.Playlists.Uploads; playlist != "" && channel.ID.String() == account.ID {
			return playlist.String(), nil
		}
	}
	return "", p.API.NoList()
}

// get makes a read-only call. A response that is not a JSON object is decoded as an empty object. refused classifies an
// unsuccessful response.
func get[T any](
	ctx context.Context, p *Platform, action, path string, token platforms.Token, refused func(*transport.Response) (*platforms.Error, string),
) (doc T, failure *platforms.Error) {
	resp, err := p.API.Do(ctx, client.Call{Action: action, Path: path, Token: token.Access, Timeout: readTimeout})
	if err != nil {
		return doc, p.API.Unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ = refused(resp)
		return doc, failure
	}
	doc, _ = jsondoc.Decode[T](resp.Body)
	return doc, nil
}
