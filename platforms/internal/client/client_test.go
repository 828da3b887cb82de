// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

func TestClient(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s %s %q %q %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body))
	}))
	defer server.Close()
	client := Client{
		Platform: "x", Name: "X", BaseURL: server.URL, Addresses: AddressPolicy{Configured: []string{server.URL}}, Transport: transport.New(transport.Options{}),
	}
	for _, call := range []Call{
		{Path: "/v1.0/me?fields=id", Token: "t"},
		{Path: "/1/feed", Token: "t", Body: Fields(url.Values{"message": {"a & b"}})},
		{Path: "/refresh?access_token=t"},
		{Path: "/2/tweets", Token: "t", Body: JSON("application/json", map[string]string{"text": "<a> & b"})},
		{Path: "/finalize", Token: "t", Method: http.MethodPost},
		{Path: "/elsewhere", URL: server.URL + "/session", Method: http.MethodPut, Header: http.Header{"Content-Range": {"bytes 0-1/2"}}, Body: Body{Content: strings.NewReader("ab"), Length: 2, Type: "video/mp4"}},
	} {
		if _, err := client.Do(t.Context(), call); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		`GET /v1.0/me?fields=id "Bearer t" "" `, `POST /1/feed "Bearer t" "application/x-www-form-urlencoded" message=a+%26+b`,
		`GET /refresh?access_token=t "" "" `, `POST /2/tweets "Bearer t" "application/json" {"text":"<a> & b"}` + "\n",
		`POST /finalize "Bearer t" "" `, `PUT /session "" "video/mp4" ab`,
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	client := Client{Name: "X", BaseURL: "://", Transport: transport.New(transport.Options{})}
	for name, tc := range map[string]struct {
		reason string
		call   Call
		says   string
	}{
		"base": {"a person must correct the configuration", Call{Path: "/"}, "the configured address of X's API is not a URL"},
		"URL":  {"an address that was handed out stands in no error", Call{URL: "://s3cr3t"}, "X could not be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Do(t.Context(), tc.call)
			if !NotSent(err) || strings.Contains(fmt.Sprint(err), "s3cr3t") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if got := client.Unanswered(err); got.Class != platforms.ClassTransient || !strings.Contains(got.Error(), tc.says) {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
	if _, err := client.Do(t.Context(), Call{Body: JSON("application/json", func() {})}); !NotSent(err) {
		t.Errorf("got %v for what cannot be written", err)
	}
}

// TestSilence tests how each kind of call ends without a response.
func TestSilence(t *testing.T) {
	var (
		client = Client{Name: "X"}
		lost   = &transport.Error{Sent: true, Err: io.ErrUnexpectedEOF}
		unsent = &transport.Error{Err: io.ErrUnexpectedEOF}
		file   = &platforms.File{Name: "a.jpg"}
	)
	tests := map[string]struct {
		reason        string
		err           error
		outcome       platforms.Outcome
		class, upload platforms.Class
	}{
		"lost":    {"what was sent may have taken effect", lost, platforms.Unknown, platforms.ClassUnknown, platforms.ClassTransient},
		"unsent":  {"what was not sent has none", unsent, platforms.NotSent, platforms.ClassTransient, platforms.ClassTransient},
		"foreign": {"an error from elsewhere says nothing of that", io.EOF, platforms.Unknown, platforms.ClassUnknown, platforms.ClassTransient},
		"changed": {"a file that was overwritten is no better the next time", &transport.Error{Sent: true, Err: platforms.ErrFileChanged}, platforms.Unknown, platforms.ClassUnknown, platforms.ClassPermanent},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := client.PublishUnanswered(tc.err); got.Outcome != tc.outcome || got.Err.Class != tc.class || !errors.Is(got.Err, tc.err) {
				t.Errorf("%s: got %s, %+v", tc.reason, got.Outcome, got.Err)
			}
			if got := client.Unanswered(tc.err); got.Class != platforms.ClassTransient {
				t.Errorf("%s: a call that only asks is repeated; got %+v", tc.reason, got)
			}
			if got := client.uploadUnanswered(file, tc.err, false); got.Class != tc.upload {
				t.Errorf("%s: an upload gives %+v", tc.reason, got)
			}
		})
	}
}
