// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// tools are the names of all MCP tools.
var tools = []string{"list_connections", "create_media_upload_url", "list_posts", "create_post", "get_post", "cancel_post"}

// sendJSON sends a request, requires the given response status, and decodes the response.
func sendJSON(ctx context.Context, method, url string, body any, status int, into any) {
	GinkgoHelper()
	data, err := json.Marshal(body)
	must(err)
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	must(err)
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(status))
	must(json.NewDecoder(response.Body).Decode(into))
}

// published is a post on a simulated platform.
type published struct {
	Text  string `json:"text"`
	Media []struct {
		Bytes int    `json:"bytes"`
		Type  string `json:"mime_type"`
	} `json:"media"`
	URL string `json:"url"`
}

// onPlatform returns the demo account's posts with the given text.
func onPlatform(ctx context.Context, platform, text string) []published {
	GinkgoHelper()
	var answer struct {
		Data []published `json:"data"`
	}
	sendJSON(ctx, http.MethodGet, herald.Sandbox()+"/_control/posts?platform="+platform, nil, http.StatusOK, &answer)
	var found []published
	for _, post := range answer.Data {
		if post.Text == text {
			found = append(found, post)
		}
	}
	return found
}

// picture writes a PNG file and returns its path.
func picture() string {
	GinkgoHelper()
	var data bytes.Buffer
	must(png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 640, 480))))
	file := filepath.Join(GinkgoT().TempDir(), "launch.png")
	must(os.WriteFile(file, data.Bytes(), 0o600))
	return file
}

// post is the subset of a post used by the tests.
type post struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}
