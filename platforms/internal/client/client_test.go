// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

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

func TestInvalidAddresses(t *testing.T) {
	client := Client{Name: "X", BaseURL: "://", Transport: transport.New(transport.Options{})}
	for name, tc := range map[string]struct {
		reason string
		call   Call
		says   string
	}{
		"base": {"a user must correct the configuration", Call{Path: "/"}, "the configured address of X's API is not a URL"},
		"URL":  {"errors do not contain issued URLs", Call{URL: "://s3cr3t"}, "X could not be reached"},
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
		t.Errorf("got %v for an unwritable address", err)
	}
}

// TestSilence tests the result of each kind of call if there is no response.
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
		"lost":    {"a sent request may have taken effect", lost, platforms.Unknown, platforms.ClassUnknown, platforms.ClassTransient},
		"unsent":  {"an unsent request has no effect", unsent, platforms.NotSent, platforms.ClassTransient, platforms.ClassTransient},
		"foreign": {"an error from elsewhere is not evidence about that", io.EOF, platforms.Unknown, platforms.ClassUnknown, platforms.ClassTransient},
		"changed": {"a file that was overwritten stays overwritten", &transport.Error{Sent: true, Err: platforms.ErrFileChanged}, platforms.Unknown, platforms.ClassUnknown, platforms.ClassPermanent},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := client.PublishUnanswered(tc.err); got.Outcome != tc.outcome || got.Err.Class != tc.class || !errors.Is(got.Err, tc.err) {
				t.Errorf("%s: got %s, %+v", tc.reason, got.Outcome, got.Err)
			}
			if got := client.Unanswered(tc.err); got.Class != platforms.ClassTransient {
				t.Errorf("%s: a read can be repeated; got %+v", tc.reason, got)
			}
			if got := client.uploadUnanswered(file, tc.err, false); got.Class != tc.upload {
				t.Errorf("%s: an upload returned %+v", tc.reason, got)
			}
		})
	}
}

func TestForm(t *testing.T) {
	form := Form{Field: "media", Name: "a \"b\".png", Values: map[string]string{"category": "tweet_image"}}
	wrapped := form.around(Body{Content: iotest.OneByteReader(strings.NewReader("bytes and more")), Length: 5, Type: "image/png"})
	body, err := io.ReadAll(wrapped.Content)
	if err != nil || wrapped.err != nil {
		t.Fatal(err, wrapped.err)
	}
	if int64(len(body)) != wrapped.Length {
		t.Errorf("%d bytes, promised were %d", len(body), wrapped.Length)
	}
	_, options, err := mime.ParseMediaType(wrapped.Type)
	if err != nil {
		t.Fatal(err)
	}
	read, err := multipart.NewReader(strings.NewReader(string(body)), options["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Value["category"]; len(got) != 1 || got[0] != "tweet_image" {
		t.Errorf("the field is %q", got)
	}
	part := read.File["media"][0]
	content, err := part.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(content)
	if err != nil || string(data) != "bytes" || part.Filename != form.Name || part.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the file is %q, %q, %v: %v", data, part.Filename, part.Header, err)
	}
}

// TestShortFile sends a file that is shorter than announced, and one whose reads fail. Neither may result in a complete
// form.
func TestShortFile(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason  string
		content io.Reader
		want    error
	}{
		"short":  {"the store returned fewer bytes than declared", strings.NewReader("byt"), io.ErrUnexpectedEOF},
		"broken": {"the connection to the store broke", io.MultiReader(strings.NewReader("b"), iotest.ErrReader(broken)), broken},
	} {
		t.Run(name, func(t *testing.T) {
			form := Form{Field: "f", Name: "n"}
			wrapped := form.around(Body{Content: tc.content, Length: 5, Type: "a/b"})
			if _, err := io.ReadAll(wrapped.Content); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// FuzzNamed checks that a URL from a platform's response only leads to the platform's hosts or to a configured address.
// It checks the host that is actually called, rather than the one that appears in the URL.
func FuzzNamed(f *testing.F) {
	for _, seed := range []string{
		"https://www.googleapis.com/upload?id=1", "https://WWW.GoogleAPIs.com:443/", "https://upload.example", "http://127.0.0.1:8080/a", "https://gateway.corp:443/b",
		"https://www.googleapis.com@127.0.0.1/", "https://127.0.0.1\\.googleapis.com/", "https://127.0.0.1%2f.googleapis.com/", "https://evil.example\u3002googleapis.com/",
		"https://[::1%25.googleapis.com]/", "https://[::1].googleapis.com/", "https://a.googleapis.com:/", "https://a.googleapis.com:0443/", "HTTPS://upload.example:443#",
		"https:upload.example", "//upload.example/", "https://upload.e\u212Aample/", "https://.googleapis.com/", "https://a..googleapis.com/", "http://127.0.0.1:8080@upload.example/",
		"https://evilgoogleapis.com/", "https://a.googleapis.com.evil.example/", "https://a.googleapis.com:8443/", "http://a.googleapis.com/", "https://127.0.0.1:8080/",
	} {
		f.Add(seed)
	}
	named := AddressPolicy{Hosts: []string{"*.googleapis.com", "upload.example"}, Configured: []string{"", "http://127.0.0.1:8080/youtube", "https://gateway.corp", "://"}}
	configured := []string{"127.0.0.1:8080", "gateway.corp:443"}
	f.Fuzz(func(t *testing.T, address string) {
		where, err := named.resolve(address)
		if err != nil {
			if where != (resolvedAddress{}) || len(err.Error()) > 512 {
				t.Errorf("%q was rejected but resolved to %+v, or the error is too long: %v", address, where, err)
			}
			return
		}
		u, err := url.Parse(where.address)
		if err != nil || where.address != address || u.User != nil {
			t.Fatalf("%q is called as %q: %v", address, where.address, err)
		}
		if where.named && u.Scheme != "https" {
			t.Errorf("%q is called without TLS", address)
		}
		host := called(t, address)
		name, port, _ := net.SplitHostPort(host)
		switch {
		case host == "": // net/http rejects it
		case !where.named && slices.Contains(configured, host):
		case where.named && port == "443" && (name == "upload.example" || strings.HasSuffix(name, ".googleapis.com")):
		default:
			t.Errorf("%q leads to %s (%+v)", address, host, where)
		}
	})
}

// called returns the host and port that net/http dials for a URL, or "" if it does not dial any.
func called(t *testing.T, address string) (host string) {
	t.Helper()
	errDialed := errors.New("dialed")
	dialed := make(chan string, 1)
	transport := &http.Transport{DialContext: func(_ context.Context, _, host string) (net.Conn, error) {
		dialed <- host
		return nil, errDialed
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, http.NoBody)
	if err != nil {
		return ""
	}
	answer, err := transport.RoundTrip(r)
	if err == nil {
		_ = answer.Body.Close()
		t.Fatalf("%q got a response", address)
	}
	if !errors.Is(err, errDialed) {
		return ""
	}
	return strings.ToLower(<-dialed)
}

// TestNamedAddresses tests which URLs from a platform's responses may be called.
func TestNamedAddresses(t *testing.T) {
	named := AddressPolicy{
		Hosts:      []string{"*.googleapis.com", "upload.example"},
		Configured: []string{"", "http://127.0.0.1:8080/youtube", "https://gateway.corp", "://"},
	}
	const called, public, refused = "as it is configured", "at public addresses", "not at all"
	for address, tc := range map[string]struct{ reason, want string }{
		"https://www.googleapis.com/upload?id=1":                   {"a host of the platform", public},
		"https://WWW.GoogleAPIs.com/upload":                        {"in any letters", public},
		"https://www.googleapis.com:443/upload":                    {"at its port", public},
		"https://a.b.googleapis.com/upload":                        {"a pattern includes all subdomains", public},
		"https://upload.example/":                                  {"an exact name", public},
		"https://googleapis.com/upload":                            {"a pattern excludes the domain itself", refused},
		"https://evilgoogleapis.com/upload":                        {"a host with the same suffix", refused},
		"https://www.googleapis.com.evil.example/":                 {"a host with the same prefix", refused},
		"https://www.googleapis.com./upload":                       {"another notation of the host", refused},
		"https://a.upload.example/":                                {"a subdomain", refused},
		"http://www.googleapis.com/upload":                         {"TLS is required", refused},
		"https://www.googleapis.com:8443/upload":                   {"another port", refused},
		"https://user@www.googleapis.com/upload":                   {"a user name", refused},
		"https://www.googleapis.com@127.0.0.1/upload":              {"the host follows the user information", refused},
		"https://www.googleapis.com/upload#a":                      {"a fragment", refused},
		"https://127.0.0.1/upload":                                 {"a loopback address is not a host of the platform", refused},
		"https://[::1]/upload":                                     {"an IPv6 loopback address", refused},
		"http://127.0.0.1:8080/elsewhere":                          {"configured addresses may have any path", called},
		"http://127.0.0.1:9090/youtube":                            {"another port of a configured host", refused},
		"https://127.0.0.1:8080/youtube":                           {"another scheme for a configured host", refused},
		"https://gateway.corp:443/upload":                          {"the default port is optional", called},
		"https://GATEWAY.corp/upload":                              {"host names are case-insensitive", called},
		"http://gateway.corp/upload":                               {"TLS is required for a configured host", refused},
		"ftp://www.googleapis.com/upload":                          {"FTP", refused},
		"file:///etc/passwd":                                       {"a file", refused},
		"//www.googleapis.com/upload":                              {"no scheme", refused},
		"/upload":                                                  {"the address has neither a scheme nor a host", refused},
		"":                                                         {"an empty string is not a URL", refused},
		"https://www.googleapis.com/" + strings.Repeat("a", 8<<10): {"the address must fit into a Secret", refused},
		"https://www.googleapis.com/\x7f":                          {"an unreadable URL is invalid", refused},
	} {
		got := called
		where, err := named.resolve(address)
		switch {
		case err != nil:
			got = refused
		case where.named:
			got = public
		}
		if got != tc.want || (named.Check(address) == nil) != (tc.want != refused) {
			t.Errorf("%q is called %s, want %s: %s (%v)", address, got, tc.want, tc.reason, err)
		}
		if err != nil && (strings.Contains(err.Error(), "upload?") || strings.Contains(err.Error(), "/etc")) {
			t.Errorf("the error contains more than the host: %v", err)
		}
	}
}

// TestForeignAddress calls a URL that is not the platform's, as if it came from a response or a Secret. Neither the
// call nor a token may reach it.
func TestForeignAddress(t *testing.T) {
	var calls, tokens atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
	}))
	defer inside.Close()
	c := Client{Name: "X", BaseURL: "https://api.example", Addresses: AddressPolicy{Hosts: []string{"*.example"}}, Transport: transport.New(transport.Options{})}
	_, err := c.Do(t.Context(), Call{URL: inside.URL, Method: http.MethodPut, Token: "t"})
	if !NotSent(err) || !errors.Is(err, errForeign) || calls.Load() != 0 {
		t.Errorf("got %v, and %d calls", err, calls.Load())
	}
	c.Addresses.Configured = []string{inside.URL}
	if _, err := c.Do(t.Context(), Call{URL: inside.URL, Method: http.MethodPut, Token: "t"}); err != nil || calls.Load() != 1 || tokens.Load() != 0 {
		t.Errorf("got %v, %d calls, %d of them with a token", err, calls.Load(), tokens.Load())
	}
}

// TestUnconfirmed tests that every failure of a call to such a URL has the same message.
func TestUnconfirmed(t *testing.T) {
	c := Client{Name: "X"}
	file := &platforms.File{Name: "a.mp4"}
	lost, unsent := &transport.Error{Sent: true, Err: io.EOF}, &transport.Error{Err: errForeign}
	words := map[string]bool{}
	for _, failure := range []*platforms.Error{
		c.uploadUnanswered(file, lost, true), c.uploadUnanswered(file, unsent, true), c.Unconfirmed(platforms.ClassUnknown, io.EOF),
		c.UploadInDoubt(lost).Err, c.UploadInDoubt(unsent).Err, c.UploadInDoubt(nil).Err,
	} {
		words[failure.Error()] = true
	}
	if len(words) != 1 {
		t.Errorf("all failures must have the same message: %v", words)
	}
	if got := c.UploadInDoubt(lost).Outcome; got != platforms.Unknown {
		t.Errorf("a sent request is %s", got)
	}
	if got := c.UploadInDoubt(unsent).Outcome; got != platforms.NotSent {
		t.Errorf("an unsent request is %s", got)
	}
}
