// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// agent-go publishes a picture with a caption on one platform, over MCP, using an API key.
//
//	HERALD_MCP_URL=https://herald.example.com/mcp HERALD_API_KEY=hrld_… agent-go x launch.png "It is out"
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: agent-go platform picture.png caption")
		os.Exit(2)
	}
	if err := publish(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "agent-go:", err)
		os.Exit(1)
	}
}

// withKey is an http.RoundTripper that adds the API key to each request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

func publish(ctx context.Context, platform, picture, caption string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent-go", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   os.Getenv("HERALD_MCP_URL"),
		HTTPClient: &http.Client{Transport: withKey(os.Getenv("HERALD_API_KEY"))},
	}, nil)
	if err != nil {
		return err
	}
	defer session.Close()

	var accounts []struct {
		ID string `json:"id"`
	}
	if err := call(ctx, session, "list_connections", map[string]any{"platform": platform}, &accounts); err != nil {
		return err
	}
	if len(accounts) == 0 {
		return errors.New("no account is connected on " + platform)
	}
	mediaID, err := upload(ctx, session, picture)
	if err != nil {
		return err
	}
	var post struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		// Platforms has an entry for each account, with its outcome.
		Platforms []struct {
			URL   *string `json:"external_url"`
			Error *string `json:"error_message"`
		} `json:"platforms"`
	}
	err = call(ctx, session, "create_post", map[string]any{
		"category":  "image",
		"media_ids": []string{mediaID},
		"targets":   []any{map[string]any{"connection_id": accounts[0].ID, "caption": caption}},
	}, &post)
	for err == nil && post.Status == "processing" {
		time.Sleep(time.Second)
		err = call(ctx, session, "get_post", map[string]any{"id": post.ID}, &post)
	}
	if err != nil {
		return err
	}
	for _, account := range post.Platforms {
		if account.Error != nil {
			return errors.New(*account.Error)
		}
		if account.URL != nil {
			fmt.Println(post.Status, *account.URL)
		}
	}
	return nil
}

// upload requests an upload URL from Herald, uploads the file there, and returns its media ID for create_post.
func upload(ctx context.Context, session *mcp.ClientSession, file string) (id string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	const mimeType = "image/png"
	var media struct {
		ID  string `json:"media_id"`
		URL string `json:"upload_url"`
	}
	err = call(ctx, session, "create_media_upload_url", map[string]any{
		"name": filepath.Base(file), "mime_type": mimeType, "size_bytes": len(content),
	}, &media)
	if err != nil {
		return "", err
	}
	put, err := http.NewRequestWithContext(ctx, http.MethodPut, media.URL, bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	put.Header.Set("Content-Type", mimeType) // the URL is signed for this content type only
	response, err := http.DefaultClient.Do(put)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New("the upload returned " + response.Status)
	}
	return media.ID, nil
}

// call calls a tool and decodes the result's data. If Herald rejects the call, it returns an error with Herald's message.
func call(ctx context.Context, session *mcp.ClientSession, tool string, arguments map[string]any, data any) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	answer, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	envelope := struct {
		Data  any `json:"data"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{Data: data}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("%s: %s: %s", tool, envelope.Error.Code, envelope.Error.Message)
	}
	return nil
}
