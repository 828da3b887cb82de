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
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// pageSize is the greatest maxResults of playlistItems.list.
	pageSize = 50
	// maxPages bounds one look-up: a project may upload 100 videos in a day.
	maxPages = 10
)

const (
	msgNoList       = "YouTube did not give the channel's videos"
	msgTooManyPages = "the channel has published more since than Herald reads, so it cannot tell whether the video is among it; look for the video by hand"
)

// Lookup asks the upload session what became of it, which is certain either way.
// If the session is gone, or its address is lost, the playlist of the channel's
// uploads is searched for the title and the description; absence from it proves
// nothing.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	// A file whose Media was deleted has no size, without which a session is not
	// to be asked: it might take the question for the end of the video.
	if s, ok := sessionOf(&job); ok && len(job.Content.Media) == 1 && job.Content.Media[0].Size > 0 {
		size := job.Content.Media[0].Size
		at, failure := p.ask(ctx, s, size)
		switch {
		case failure != nil:
			return platforms.LookupResult{}, failure
		case at.state == done:
			found := p.posted(at.video)
			return platforms.LookupResult{Matches: 1, ExternalID: found.ExternalID, ExternalURL: found.ExternalURL, PostedAt: found.PostedAt, Certain: true}, nil
		case at.state == open && at.stored == size:
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgUnderway)
		case at.state == open:
			return platforms.LookupResult{Proof: true}, nil
		}
	}
	finding, failure := p.search(ctx, &job)
	if failure != nil {
		return platforms.LookupResult{}, failure
	}
	return finding, nil
}

// search looks for the job's video in the playlist of the channel's uploads,
// which lists the newest first.
func (p *Platform) search(ctx context.Context, job *platforms.Job) (platforms.LookupResult, *platforms.Error) {
	playlist, failure := p.uploads(ctx, job.Account)
	if failure != nil {
		return platforms.LookupResult{}, failure
	}
	query := url.Values{"part": {"snippet,contentDetails"}, "playlistId": {playlist}, "maxResults": {strconv.Itoa(pageSize)}}
	var finding platforms.LookupResult
	for range maxPages {
		page, failure := p.list(ctx, "list", "/youtube/v3/playlistItems?"+query.Encode(), job.Account.Token)
		if failure != nil {
			return platforms.LookupResult{}, failure
		}
		items, ok := page.List("items")
		if !ok {
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
		}
		recent := false
		for _, item := range items {
			id, at := item.Object("contentDetails").Text("videoId"), publishedAt(item)
			if !validID(id) {
				return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
			}
			if !at.IsZero() && at.Before(job.SearchFrom.Truncate(time.Second)) {
				continue
			}
			recent = true
			if fits(job, item, id) {
				// Of several, the last that is listed is the earliest.
				finding.Matches++
				finding.ExternalID, finding.ExternalURL, finding.PostedAt = id, p.videoURL(id), at
			}
		}
		token := page.Text("nextPageToken")
		if token == "" || !recent {
			return finding, nil
		}
		query.Set("pageToken", token)
	}
	return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPages)
}

// fits tells whether a listed video may be the job's.
func fits(job *platforms.Job, item jsondoc.Object, id string) bool {
	snippet := item.Object("snippet")
	if !sameText(job.Content.Title, snippet.Text("title")) || !sameText(job.Content.Text, snippet.Text("description")) {
		return false
	}
	return job.Taken == nil || !job.Taken(id)
}

// sameText compares what was sent with what is listed, whatever was done to
// blanks and to how letters are composed.
func sameText(sent, listed string) bool { return text.Fold(sent) == text.Fold(listed) }

// uploads asks for the playlist of the channel's uploads.
func (p *Platform) uploads(ctx context.Context, account platforms.Account) (string, *platforms.Error) {
	doc, failure := p.list(ctx, "identify", "/youtube/v3/channels?part=contentDetails&mine=true", account.Token)
	if failure != nil {
		return "", failure
	}
	items, _ := doc.List("items")
	for _, channel := range items {
		if playlist := channel.Object("contentDetails").Object("relatedPlaylists").Text("uploads"); playlist != "" && channel.Text("id") == account.ID {
			return playlist, nil
		}
	}
	return "", platforms.Errorf(platforms.ClassUnknown, msgNoList)
}

// list makes a call that only asks.
func (p *Platform) list(ctx context.Context, action, path string, token platforms.Token) (jsondoc.Object, *platforms.Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.APIURL+path, http.NoBody)
	if err != nil {
		return nil, badAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	resp, err := p.client.Do(ctx, transport.Call{Platform: "youtube", Action: action, Timeout: readTimeout}, req)
	if err != nil {
		return nil, unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.refused(resp)
		return nil, failure
	}
	doc, ok := jsondoc.Parse(resp.Body)
	if !ok {
		return nil, platforms.Errorf(platforms.ClassUnknown, msgNoList)
	}
	return doc, nil
}
