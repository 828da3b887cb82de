// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

// apply creates a Media, uploads its file to the URL in its status, and waits until the manager has verified it. It
// returns the durations of both steps, in seconds.
func (s *session) apply(ctx context.Context, namespace, name string, mime v1alpha1.MimeType, content io.Reader, size int64) (sent, verified float64, err error) {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: name, MimeType: mime, SizeBytes: size},
	}
	if err := s.stack.Kubernetes.Create(ctx, media); err != nil {
		return 0, 0, err
	}
	if err := s.awaitMedia(ctx, media, func() bool { return media.Status.UploadURL != "" }); err != nil {
		return 0, 0, err
	}
	if sent, err = put(ctx, media.Status.UploadURL, mime, content, size); err != nil {
		return sent, 0, err
	}
	started := time.Now()
	err = s.awaitMedia(ctx, media, func() bool { return media.Status.Phase != v1alpha1.MediaPending })
	verified = secondsSince(started)
	if err == nil && media.Status.Phase != v1alpha1.MediaUploaded {
		err = fmt.Errorf("the manager reports about the file: %+v", media.Status)
	}
	return sent, verified, err
}

// awaitMedia polls a Media until done returns true.
func (s *session) awaitMedia(ctx context.Context, media *v1alpha1.Media, done func() bool) error {
	return until(ctx, pollEvery, "the manager has checked the Media "+media.Name, func(ctx context.Context) (bool, error) {
		err := s.stack.Kubernetes.Get(ctx, client.ObjectKeyFromObject(media), media)
		return done(), err
	})
}

// call sends a request with an optional API key and an optional JSON body, and decodes the JSON response into out
// unless out is nil.
func call(ctx context.Context, method, url, key string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := send(http.DefaultClient, request)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// put uploads a file and returns the duration, in seconds.
func put(ctx context.Context, url string, mime v1alpha1.MimeType, content io.Reader, size int64) (float64, error) {
	started := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, content)
	if err != nil {
		return 0, err
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", string(mime))
	_, err = send(http.DefaultClient, request)
	return secondsSince(started), err
}

// get returns the body of a page.
func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return send(client, request)
}

// send sends a request and returns the response body. It fails unless the status indicates success.
func send(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s%s answers %s: %s", request.Method, request.URL.Host, request.URL.Path, response.Status, body)
	}
	return body, err
}

func secondsSince(t time.Time) float64 { return measure.Rounded(time.Since(t).Seconds(), 3) }
