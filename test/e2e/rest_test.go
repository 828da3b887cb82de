// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// api is a replica's REST API, with the team's key.
type api struct{ url, key string }

// told is a response of the API.
type told struct {
	header http.Header
	// body is the whole response body.
	body string
	// id and status are the post's.
	id, status string
}

func newAPI(ctx context.Context) api {
	GinkgoHelper()
	var key corev1.Secret
	Expect(k8s.Get(ctx, types.NamespacedName{Namespace: demo, Name: "demo-token"}, &key)).To(Succeed())
	return api{forward(ctx, &pods(ctx, "apiserver")[0], 8080) + "/api/v1", string(key.Data["token"])}
}

func (a api) get(ctx context.Context, path string) told {
	GinkgoHelper()
	return a.do(ctx, http.MethodGet, path, "", nil)
}

// post creates an object with an Idempotency-Key.
func (a api) post(ctx context.Context, path, key string, body any) told {
	GinkgoHelper()
	content, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	return a.do(ctx, http.MethodPost, path, key, content)
}

func (a api) do(ctx context.Context, method, path, key string, body []byte) (out told) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+a.key)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(BeElementOf(http.StatusOK, http.StatusCreated), string(read))
	var one struct {
		Data struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"data"`
	}
	// A list response does not contain a single post.
	_ = json.Unmarshal(read, &one)
	return told{response.Header, string(read), one.Data.ID, one.Data.Status}
}
