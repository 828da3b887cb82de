// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// firstPause and longestPause are Herald's initial and maximum intervals between container status polls.
const firstPause, longestPause = 300 * time.Millisecond, 3 * time.Second

// platform makes the same calls for an account as Herald does.
type platform struct {
	Account
	client *http.Client
}

// prepare makes the uploads that precede the visible call of a post with images, and returns the platform's ids, or ""
// if there are no images.
func (p platform) prepare(ctx context.Context, target *v1alpha1.PostTarget, files []string) (string, error) {
	if p.Platform == v1alpha1.PlatformThreads {
		return p.container(ctx, target, files)
	}
	ids := make([]string, len(files))
	for i, file := range files {
		var err error
		if ids[i], err = p.upload(ctx, file); err != nil {
			return "", err
		}
	}
	return strings.Join(ids, ","), nil
}

// publish makes a target's visible call and returns the platform's id.
func (p platform) publish(ctx context.Context, target *v1alpha1.PostTarget, prepared string) (string, error) {
	if p.Platform == v1alpha1.PlatformThreads {
		id, err := p.postForm(ctx, "/threads_publish", url.Values{"creation_id": {prepared}})
		if err != nil {
			return "", err
		}
		// Herald also queries the post's URL.
		_, err = p.call(ctx, http.MethodGet, "/v1.0/"+id+"?fields=id,permalink,timestamp", "", nil)
		return id, err
	}
	tweet := map[string]any{"text": target.Caption}
	if prepared != "" {
		tweet["media"] = map[string][]string{"media_ids": strings.Split(prepared, ",")}
	}
	body, err := json.Marshal(tweet)
	if err != nil {
		return "", err
	}
	answer, err := p.call(ctx, http.MethodPost, "/2/tweets", "application/json", bytes.NewReader(body))
	return answer.Data.ID, err
}

// upload uploads an image to X.
func (p platform) upload(ctx context.Context, address string) (string, error) {
	content, err := p.read(ctx, address)
	if err != nil {
		return "", err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="media"; filename="media"`}, "Content-Type": {string(v1alpha1.MimeJPEG)},
	})
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, form.WriteField("media_category", "tweet_image"), form.Close()); err != nil {
		return "", err
	}
	answer, err := p.call(ctx, http.MethodPost, "/2/media/upload", form.FormDataContentType(), &body)
	return answer.Data.ID, err
}

// read reads a file from the store.
func (p platform) read(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the store responds %s", response.Status)
	}
	return io.ReadAll(response.Body)
}

// container creates a Threads container with one image and waits until it is ready.
func (p platform) container(ctx context.Context, target *v1alpha1.PostTarget, files []string) (string, error) {
	if len(files) != 1 {
		return "", fmt.Errorf("posts with %d files are not supported here", len(files))
	}
	id, err := p.postForm(ctx, "/threads", url.Values{"media_type": {"IMAGE"}, "image_url": files, "text": {target.Caption}})
	if err != nil {
		return "", err
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		answer, err := p.call(ctx, http.MethodGet, "/v1.0/"+id+"?fields=id,status,error_message", "", nil)
		if err != nil || answer.Status == "FINISHED" {
			return id, err
		}
		if answer.Status != "IN_PROGRESS" {
			return "", fmt.Errorf("a container is %s", answer.Status)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (p platform) postForm(ctx context.Context, path string, form url.Values) (string, error) {
	answer, err := p.call(ctx, http.MethodPost, "/v1.0/"+p.ID+path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	return answer.ID, err
}

// reply is the part of a platform's response that is read.
type reply struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Data   struct {
		ID string `json:"id"`
	} `json:"data"`
}

// call makes a call and decodes the response, which contains an id.
func (p platform) call(ctx context.Context, method, path, contentType string, body io.Reader) (reply, error) {
	var out reply
	request, err := http.NewRequestWithContext(ctx, method, p.URL+path, body)
	if err != nil {
		return out, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Authorization", "Bearer "+p.Token)
	response, err := p.client.Do(request)
	if err != nil {
		return out, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return out, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return out, fmt.Errorf("%s %s responds %s: %s", method, path, response.Status, text)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, err
	}
	if out.ID == "" && out.Data.ID == "" {
		return out, fmt.Errorf("%s %s: the platform's response has no id", method, path)
	}
	return out, nil
}
