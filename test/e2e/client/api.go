// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// patience is the time for which a request is retried.
	patience = 2 * time.Minute
	// pause is the retry interval.
	pause = 200 * time.Millisecond
	// callWithin is the request timeout.
	callWithin = 15 * time.Second
)

// api is the REST API with a key.
type api struct {
	url, token string
	http       http.Client
	// store uploads files, regardless of the host in their URLs.
	store http.Client
}

// storeAt returns a client that connects to the store at a host and port in the cluster. Upload URLs are signed for the
// host that browsers use, so the client keeps the URL and changes only the connection.
func storeAt(address string) http.Client {
	if address == "" {
		return http.Client{}
	}
	var dialer net.Dialer
	return http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}}}
}

// refused is a permanent error response.
type refused struct {
	status int
	body   string
}

func (r refused) Error() string { return fmt.Sprintf("HTTP %d: %s", r.status, r.body) }

// call sends one request and decodes the data of the response.
func (a *api) call(ctx context.Context, method, path, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return refused{resp.StatusCode, string(answer)}
	}
	return json.Unmarshal(answer, &struct {
		Data any `json:"data"`
	}{out})
}

// again sends a request, retries it as long as that may help, and returns the number of attempts.
func (a *api) again(ctx context.Context, method, path, key string, in, out any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for tries := 1; ; tries++ {
		err := a.call(ctx, method, path, key, in, out)
		if err == nil {
			return tries, nil
		}
		if r, ok := err.(refused); ok && r.status < 500 && r.status != http.StatusTooManyRequests && r.status != http.StatusConflict { //nolint:errorlint // call wraps no error
			return tries, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return tries, fmt.Errorf("given up after %d tries: %w", tries, err)
		}
	}
}

// prepare uploads the files and looks up the accounts.
func (a *api) prepare(ctx context.Context, picture, film string) (content, error) {
	c := content{connections: map[string]string{}}
	var connections []struct{ ID, Platform string }
	if _, err := a.again(ctx, http.MethodGet, "/connections", "", nil, &connections); err != nil {
		return c, fmt.Errorf("cannot list the connections: %w", err)
	}
	for _, connection := range connections {
		c.connections[connection.Platform] = connection.ID
	}
	var err error
	if c.picture, err = a.upload(ctx, picture, "image/jpeg"); err != nil {
		return c, err
	}
	c.film, err = a.upload(ctx, film, "video/mp4")
	return c, err
}

// upload uploads a file to the signed address and returns its id.
func (a *api) upload(ctx context.Context, file, mimeType string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var place struct {
		MediaID   string `json:"media_id"`
		UploadURL string `json:"upload_url"`
	}
	request := map[string]any{"name": filepath.Base(file), "mime_type": mimeType, "size_bytes": len(data)}
	if _, err := a.again(ctx, http.MethodPost, "/media/upload-url", "", request, &place); err != nil {
		return "", fmt.Errorf("cannot get an upload URL for %s: %w", file, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, place.UploadURL, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", mimeType)
	resp, err := a.store.Do(req)
	if err != nil {
		return "", fmt.Errorf("cannot upload %s: %w", file, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(resp.Body)
		return "", fmt.Errorf("the store refused %s: HTTP %d: %s", file, resp.StatusCode, answer)
	}
	return place.MediaID, nil
}

// create creates a post that is due after ahead.
func (a *api) create(ctx context.Context, body map[string]any, marker string, ahead time.Duration) (accepted, error) {
	done := accepted{Marker: marker, Due: time.Now().Add(ahead).UTC()}
	if ahead > 0 {
		body["scheduled_at"] = done.Due.Format("2006-01-02T15:04:05.000Z")
	}
	var post struct{ ID string }
	var err error
	done.Tries, err = a.again(ctx, http.MethodPost, "/posts", strings.ReplaceAll(marker, " ", "-"), body, &post)
	done.ID = post.ID
	return done, err
}
