// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gomastodon reads and writes posts with github.com/mattn/go-mastodon, which has no idempotency keys and does not
// report the server's limits. Package mastodon, one folder up, describes its input and its result.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-mastodon"
)

type input struct {
	URL   string        `json:"url"`
	Token string        `json:"token"`
	Text  string        `json:"text"`
	Image string        `json:"image"`
	Video string        `json:"video"`
	Read  []mastodon.ID `json:"read"`
}

type file struct {
	Type        string  `json:"type"`
	Description string  `json:"description"`
	X           float64 `json:"x"`
	Y           float64 `json:"y"`
}

type post struct {
	ID         mastodon.ID `json:"id"`
	Text       string      `json:"text"`
	HTML       string      `json:"html"`
	Visibility string      `json:"visibility"`
	Spoiler    string      `json:"spoiler"`
	Language   string      `json:"language"`
	Sensitive  bool        `json:"sensitive"`
	InReplyTo  string      `json:"inReplyTo"`
	Files      []file      `json:"files"`
}

type result struct {
	Acct     string        `json:"acct"`
	Read     []post        `json:"read"`
	Written  []post        `json:"written"`
	Replies  []mastodon.ID `json:"replies"`
	Listed   []mastodon.ID `json:"listed"`
	Refused  []int         `json:"refused"`
	App      bool          `json:"app"`
	Repeated string        `json:"repeated"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	c := mastodon.NewClient(&mastodon.Config{Server: in.URL, AccessToken: in.Token})
	account, err := c.GetAccountCurrentUser(ctx)
	if err != nil {
		return err
	}
	out := result{Acct: account.Acct}
	if out.Read, err = read(ctx, c, in.Read...); err != nil {
		return err
	}
	if err := write(ctx, c, &in, &out); err != nil {
		return err
	}
	if out.Listed, err = list(ctx, c, account.ID); err != nil {
		return err
	}
	if _, err := c.GetInstance(ctx); err != nil {
		return fmt.Errorf("the server: %w", err)
	}
	app, err := mastodon.RegisterApp(ctx, &mastodon.AppConfig{Server: in.URL, ClientName: "test", RedirectURIs: "urn:ietf:wg:oauth:2.0:oob", Scopes: "read write"})
	if err != nil {
		return fmt.Errorf("register an app: %w", err)
	}
	out.App = app.ClientID != "" && app.ClientSecret != ""
	return json.NewEncoder(os.Stdout).Encode(out)
}

// write publishes a text, a reply with an image, and a video, and makes requests that the server refuses.
func write(ctx context.Context, c *mastodon.Client, in *input, out *result) error {
	text, err := c.PostStatus(ctx, &mastodon.Toot{Status: in.Text, Visibility: "unlisted", Language: "en"})
	if err != nil {
		return fmt.Errorf("post a text: %w", err)
	}
	image, err := upload(ctx, c, in.Image, "a picture", "-0.50,0.25")
	if err != nil {
		return err
	}
	reply, err := c.PostStatus(ctx, &mastodon.Toot{Status: "with a picture", MediaIDs: []mastodon.ID{image.ID}, InReplyToID: text.ID, SpoilerText: "a picture follows", Sensitive: true})
	if err != nil {
		return fmt.Errorf("post an image: %w", err)
	}
	video, err := upload(ctx, c, in.Video, "", "")
	if err != nil {
		return err
	}
	film, err := c.PostStatus(ctx, &mastodon.Toot{MediaIDs: []mastodon.ID{video.ID}})
	if err != nil {
		return fmt.Errorf("post a video: %w", err)
	}
	if out.Written, err = read(ctx, c, text.ID, reply.ID, film.ID); err != nil {
		return err
	}
	thread, err := c.GetStatusContext(ctx, text.ID)
	if err != nil {
		return err
	}
	for _, p := range thread.Descendants {
		out.Replies = append(out.Replies, p.ID)
	}
	_, used := c.PostStatus(ctx, &mastodon.Toot{Status: "again", MediaIDs: []mastodon.ID{image.ID}})
	_, long := c.PostStatus(ctx, &mastodon.Toot{Status: strings.Repeat("a", 501)})
	deleted, err := c.PostStatus(ctx, &mastodon.Toot{Status: "deleted at once"})
	if err != nil {
		return err
	}
	if err := c.DeleteStatus(ctx, deleted.ID); err != nil {
		return err
	}
	_, gone := c.GetStatus(ctx, deleted.ID)
	out.Refused = []int{statusOf(used), statusOf(long), statusOf(gone)}
	return nil
}

func upload(ctx context.Context, c *mastodon.Client, path, description, focus string) (*mastodon.Attachment, error) {
	content, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // it was only read
	made, err := c.UploadMediaFromMedia(ctx, &mastodon.Media{File: content, Description: description, Focus: focus})
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", path, err)
	}
	for statusOf(c.GetMediaStatus(ctx, made)) == http.StatusPartialContent {
		<-time.After(poll)
	}
	return made, nil
}

// poll is the pause between two reads of a file that the server is processing.
const poll = 50 * time.Millisecond

func statusOf(err error) int {
	if failure, ok := errors.AsType[*mastodon.APIError](err); ok {
		return failure.StatusCode
	}
	return 0
}

func list(ctx context.Context, c *mastodon.Client, account mastodon.ID) (ids []mastodon.ID, err error) {
	page := &mastodon.Pagination{Limit: 2}
	for {
		posts, err := c.GetAccountStatuses(ctx, account, page)
		if err != nil {
			return nil, err
		}
		for _, p := range posts {
			ids = append(ids, p.ID)
		}
		if page.MaxID == "" || len(posts) == 0 {
			return ids, nil
		}
		page.SinceID, page.MinID, page.Limit = "", "", 2
	}
}

func read(ctx context.Context, c *mastodon.Client, ids ...mastodon.ID) ([]post, error) {
	out := []post{}
	for _, id := range ids {
		status, err := c.GetStatus(ctx, id)
		if err != nil {
			return nil, err
		}
		source, err := c.GetStatusSource(ctx, id)
		if err != nil {
			return nil, err
		}
		p := post{ID: id, Text: source.Text, HTML: status.Content, Visibility: status.Visibility, Spoiler: status.SpoilerText, Language: status.Language, Sensitive: status.Sensitive, Files: []file{}}
		if parent, ok := status.InReplyToID.(string); ok {
			p.InReplyTo = parent
		}
		for _, a := range status.MediaAttachments {
			p.Files = append(p.Files, file{a.Type, a.Description, a.Meta.Focus.X, a.Meta.Focus.Y})
		}
		out = append(out, p)
	}
	return out, nil
}
