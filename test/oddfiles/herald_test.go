// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/test/browser/stack"
	"github.com/herald-social/herald/test/oddfiles"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	pollEvery = 250 * time.Millisecond
	// deliveredWithin allows for many concurrent deliveries and a busy machine.
	deliveredWithin = 10 * time.Minute
)

// herald is a client of Herald's API and of the simulated platforms.
type herald struct {
	base, key, sandbox string
	// connections are the ids of the connections, by platform.
	connections map[oddfiles.Platform]string
}

// refusal is the error for a 4xx response.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.message) }

func newHerald(ctx context.Context, s *stack.Stack) (*herald, error) {
	h := &herald{base: s.Variable("HERALD_BASE_URL"), key: s.Variable("HERALD_API_KEY"), sandbox: s.Sandbox(), connections: map[oddfiles.Platform]string{}}
	var found []struct {
		ID       string            `json:"id"`
		Platform oddfiles.Platform `json:"platform"`
	}
	err := h.call(ctx, http.MethodGet, "/connections", nil, &found)
	for _, c := range found {
		h.connections[c.Platform] = c.ID
	}
	return h, err
}

// call sends a request. The error is a *refusal if Herald rejects it.
func (h *herald) call(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, h.base+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+h.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Data  json.RawMessage `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %s: %w", method, path, response.Status, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return &refusal{response.StatusCode, string(answer.Error)}
	}
	return json.Unmarshal(answer.Data, into)
}

// upload uploads a file and returns its id.
func (h *herald) upload(ctx context.Context, row *oddfiles.Row, data []byte) (string, error) {
	var answer struct {
		ID  string `json:"media_id"`
		URL string `json:"upload_url"`
	}
	ask := map[string]any{"name": row.Name, "mime_type": row.Declares(), "size_bytes": len(data)}
	if err := h.call(ctx, http.MethodPost, "/media/upload-url", ask, &answer); err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, answer.URL, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", row.Declares())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the store answers %s", response.Status)
	}
	return answer.ID, errors.Join(err, response.Body.Close())
}

// delivery is the part of a post that the tests use.
type delivery struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Platforms []struct {
		Platform oddfiles.Platform `json:"platform"`
		Status   string            `json:"status"`
		Error    string            `json:"error_message"`
	} `json:"platforms"`
}

// create creates a post with a file for some platforms.
func (h *herald) create(ctx context.Context, row *oddfiles.Row, media string, to []oddfiles.Platform, draft bool) (delivery, error) {
	post := map[string]any{"draft": draft, "category": "image", "media_ids": []string{media}}
	if row.IsVideo() {
		post = map[string]any{"draft": draft, "category": "video", "media_id": media}
	}
	var targets []map[string]any
	for _, p := range to {
		target := map[string]any{"connection_id": h.connections[p], "caption": "file " + media}
		if p == oddfiles.YouTube {
			target["youtube_title"] = "file " + media
		}
		targets = append(targets, target)
	}
	post["targets"] = targets
	var created delivery
	err := h.call(ctx, http.MethodPost, "/posts", post, &created)
	return created, err
}

// delivered waits until a post is published or failed on all platforms.
func (h *herald) delivered(ctx context.Context, id string) (d delivery, err error) {
	err = wait.PollUntilContextTimeout(ctx, pollEvery, deliveredWithin, true, func(ctx context.Context) (bool, error) {
		d = delivery{}
		err := h.call(ctx, http.MethodGet, "/posts/"+id, nil, &d)
		return slices.Contains([]string{"posted", "failed", "cancelled"}, d.Status), err
	})
	if err != nil {
		err = fmt.Errorf("wait for the post, which is %+v: %w", d, err)
	}
	return d, err
}

// arrived returns the files that the platforms received in posts with the given media file.
func (h *herald) arrived(ctx context.Context, media string) (map[oddfiles.Platform][]byte, error) {
	var answer struct {
		Data []sandboxtest.Post `json:"data"`
	}
	if err := fetch(ctx, h.sandbox+"/_control/posts", func(r io.Reader) error { return json.NewDecoder(r).Decode(&answer) }); err != nil {
		return nil, err
	}
	found := map[oddfiles.Platform][]byte{}
	for i := range answer.Data {
		p := &answer.Data[i]
		if !slices.Contains(strings.Fields(p.Text+" "+p.Title), media) || len(p.Media) == 0 {
			continue
		}
		err := fetch(ctx, h.sandbox+"/_media/"+p.Media[0].SHA256, func(r io.Reader) (err error) {
			found[oddfiles.Platform(p.Platform)], err = io.ReadAll(r)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func fetch(ctx context.Context, url string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s answers %s", url, response.Status), response.Body.Close())
	}
	return errors.Join(read(response.Body), response.Body.Close())
}
