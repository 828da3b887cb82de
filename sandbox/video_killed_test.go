// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestKilledWhileUploading kills the sandbox while several clients upload videos.
func TestKilledWhileUploading(t *testing.T) {
	for name, post := range map[string]poster{"tiktok": videoOnTikTok} {
		t.Run(name, func(t *testing.T) { testKilled(t, post) })
	}
}

// putFilm uploads the video to an address and reports whether the platform has accepted it.
func putFilm(client *http.Client, address string) (bool, error) {
	req, err := http.NewRequest(http.MethodPut, address, bytes.NewReader(shortFilm))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "video/mp4")
	req.Header.Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(shortFilm)-1, len(shortFilm)))
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode < 300, err
}

func videoOnTikTok(client *http.Client, base, text string) (bool, error) {
	body := `{"post_info":{"title":"` + text + `","privacy_level":"SELF_ONLY","brand_content_toggle":false,"brand_organic_toggle":false},` +
		fromFile(len(shortFilm), len(shortFilm), 1) + `}`
	req, err := http.NewRequest(http.MethodPost, base+tiktokPublish+"video/init/", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer tiktok-access-demo")
	req.Header.Set("Content-Type", jsonUTF8)
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var begun struct {
		Data struct {
			Address string `json:"upload_url"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&begun); err != nil {
		return false, err
	}
	return putFilm(client, begun.Data.Address)
}
