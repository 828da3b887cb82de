// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/test/must"
)

// A server that offers HTTP/2 gets a connection for each concurrent request, and later requests reuse these.
func TestRequestsShareNoConnection(t *testing.T) {
	const atOnce = 40
	var mu sync.Mutex
	connections := map[string]bool{}
	var together sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.RemoteAddr] = true
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer secret" || r.ProtoMajor != 1 {
			t.Errorf("%s with %q", r.Proto, r.Header.Get("Authorization"))
		}
		together.Done()
		together.Wait()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client, err := kubeclient.NewHTTPClient(&rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	must.Succeed(t, err)
	for round := 1; round <= 2; round++ {
		together.Add(atOnce)
		var group errgroup.Group
		for range atOnce {
			group.Go(func() error {
				answer, err := client.Get(server.URL)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, answer.Body)
				return errors.Join(err, answer.Body.Close())
			})
		}
		must.Succeed(t, group.Wait())
		if len(connections) != atOnce {
			t.Errorf("round %d: %d connections for %d concurrent requests", round, len(connections), atOnce)
		}
	}
}
