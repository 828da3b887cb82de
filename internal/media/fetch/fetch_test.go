// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/publicaddr"
	"github.com/herald-social/herald/test/must"
)

// anywhere permits all addresses, so that tests can reach their own server.
func anywhere(netip.Addr) error { return nil }

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func trusting(s *httptest.Server, o Options) *Client {
	o.Roots = x509.NewCertPool()
	o.Roots.AddCert(s.Certificate())
	return New(o)
}

// routes returns a server's responses by path.
func routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "0123456789") })
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "01234")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "56789")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "01234")
	})
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/encoded", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "0123456789")
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
	})
	mux.HandleFunc("/hops/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		to := "/file"
		if n > 1 {
			to = fmt.Sprintf("/hops/%d", n-1)
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusTemporaryRedirect)
	})
	return mux
}

func TestGet(t *testing.T) {
	s := serve(t, routes())
	ten := Expected{MIMEType: "image/png", MaxSize: 10}
	exact := func(n int64) Expected { return Expected{MIMEType: "image/png", Size: n, MaxSize: 100} }
	for name, tc := range map[string]struct {
		reason string
		url    string
		want   Expected
		// problem is the message, or "" if the file is read.
		problem string
		final   bool
	}{
		"file":                 {"the server declares the size", s.URL + "/file", ten, "", false},
		"file of known size":   {"both sizes are equal", s.URL + "/file", exact(10), "", false},
		"other size":           {"a wrong size is a permanent error", s.URL + "/file", exact(9), "the file is 10 bytes long, but spec.sizeBytes says 9", true},
		"too large":            {"the body is not read", s.URL + "/file", Expected{MaxSize: 9}, "the file is 10 bytes long, but at most 9 are allowed", true},
		"without a size":       {"the store needs the size in advance", s.URL + "/chunked", ten, "the server does not send the size of the file; set it in spec.sizeBytes", true},
		"size declared only":   {"the declared size is used", s.URL + "/chunked", exact(10), "", false},
		"longer than declared": {"the file has more bytes than declared", s.URL + "/chunked", exact(9), "the file is longer than spec.sizeBytes says", true},
		"shorter":              {"the file has fewer bytes than declared", s.URL + "/chunked", exact(11), "the file is shorter than its declared size", false},
		"cut":                  {"a broken connection is temporary", s.URL + "/cut", ten, "the file is shorter than its declared size", false},
		"empty":                {"an empty file is invalid", s.URL + "/empty", ten, "the file is empty", true},
		"encoded":              {"few bytes could unfold to many", s.URL + "/encoded", ten, "the server sends the file encoded, although it was asked not to", true},
		"missing":              {"the file may be published a little later", s.URL + "/status/404", ten, "the server returned status 404", false},
		"down":                 {"the server may recover", s.URL + "/status/503", ten, "the server returned status 503", false},
		"hurried":              {"a later retry may succeed", s.URL + "/status/429", ten, "the server returned status 429", false},
		"gone":                 {"the file is permanently gone", s.URL + "/status/410", ten, "the server returned status 410", true},
		"needs a login":        {"downloads have no credentials", s.URL + "/status/401", ten, "the server returned status 401", true},
		"part":                 {"no part was requested", s.URL + "/status/206", ten, "the server returned status 206", true},
		"five redirects":       {"the maximum number of redirects", s.URL + "/hops/5", ten, "", false},
		"six redirects":        {"a sixth redirect", s.URL + "/hops/6", ten, "it redirects more than 5 times", true},
		"redirect to http":     {"the redirect drops encryption", s.URL + "/to?u=http://example.com/", ten, "it is not an https URL", true},
		"redirect to a file":   {"the redirect leaves HTTP", s.URL + "/to?u=file:///etc/passwd", ten, "it is not an https URL", true},
		"redirect with a name": {"credentials are not sent", s.URL + "/to?u=https://a:b@example.com/", ten, "it contains a user name or password", true},
		"http":                 {"only https", "http://example.com/a", ten, "it is not an https URL", true},
		"password":             {"the status would show the password to all readers", "https://a:b@example.com/a", ten, "it contains a user name or password", true},
		"no server":            {"the host is missing", "https:///a", ten, "it names no server", true},
		"no URL":               {"the URL cannot be parsed", "https://[::1/a", ten, "it is not a URL", true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			err := trusting(s, Options{Allow: anywhere}).Get(t.Context(), tc.url, tc.want, func(_ context.Context, size int64, body io.Reader) error {
				var err error
				if got, err = io.ReadAll(body); err == nil && int64(len(got)) != size {
					t.Errorf("%s: %d bytes, want %d", tc.reason, len(got), size)
				}
				return err
			})
			if tc.problem == "" {
				if err != nil || string(got) != "0123456789" {
					t.Fatalf("%s: read %q, %v", tc.reason, got, err)
				}
				return
			}
			wantProblem(t, err, tc.problem, tc.final)
		})
	}
}

func wantProblem(t *testing.T, err error, message string, final bool) {
	t.Helper()
	var problem *DownloadError
	if !errors.As(err, &problem) {
		t.Fatalf("got %v, want a problem", err)
	}
	if diff := cmp.Diff(DownloadError{Message: message, Final: final}, *problem, cmp.FilterPath(
		func(p cmp.Path) bool { return p.String() == "cause" }, cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGetSendsAccept(t *testing.T) {
	var header http.Header
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		_, _ = io.WriteString(w, "x")
	}))
	err := trusting(s, Options{Allow: anywhere}).Get(t.Context(), s.URL, Expected{MIMEType: "image/webp", MaxSize: 1}, drain)
	must.Succeed(t, err)
	want := http.Header{"Accept": {"image/webp"}, "Accept-Encoding": {"identity"}, "User-Agent": {"Herald"}, "Connection": {"close"}}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("unexpected request headers (-want +got):\n%s", diff)
	}
}

func drain(_ context.Context, _ int64, body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

// The server must not receive a request at all: a request whose response is ignored may already have done harm.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	var arrived atomic.Int64
	s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001", "127.1"} {
		t.Run(host, func(t *testing.T) {
			err := trusting(s, Options{}).Get(t.Context(), "https://"+host+port+"/", Expected{MaxSize: 1}, drain)
			var problem *DownloadError
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem", err)
			}
			if strings.Contains(problem.Message, "127.0.0.1") {
				t.Errorf("the message reveals a resolved address: %s", problem.Message)
			}
		})
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// Users who choose a URL must not discover internal names: a name with a private address and one without an address get
// the same response, after the same number of attempts.
func TestNamesHaveTheSameMessage(t *testing.T) {
	inside := publicaddr.Control(allow(publicaddr.Check))("tcp", "10.96.0.10:443", nil)
	for name, err := range map[string]error{
		"inside":    &url.Error{Op: "Get", URL: "https://a?token=secret", Err: &net.OpError{Op: "dial", Err: inside}},
		"no name":   &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true},
		"no answer": &net.DNSError{Err: "server misbehaving", Name: "a", IsTemporary: true},
		"too late":  &net.DNSError{Err: "i/o timeout", Name: "a", IsTimeout: true},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, explain(err), "it does not resolve to a public address", false)
			if cause := errors.Unwrap(explain(err)); cause == nil || strings.Contains(cause.Error(), "token=secret") {
				t.Errorf("the log contains %v", cause)
			}
		})
	}
}

// The first server may be reached, but not the one that it redirects to.
func TestRedirectsAreChecked(t *testing.T) {
	var arrived atomic.Int64
	inside := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	outside := serve(t, http.RedirectHandler(inside.URL, http.StatusFound))
	var asked atomic.Int64
	first := func(netip.Addr) error {
		if asked.Add(1) > 1 {
			return publicaddr.ErrNotPublic
		}
		return nil
	}
	err := trusting(outside, Options{Allow: first}).Get(t.Context(), outside.URL, Expected{MaxSize: 1}, drain)
	wantProblem(t, err, "it does not resolve to a public address", false)
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestUntrustedCertificate(t *testing.T) {
	s := serve(t, routes())
	err := New(Options{Allow: anywhere, Roots: x509.NewCertPool()}).Get(t.Context(), s.URL+"/file", Expected{MaxSize: 10}, drain)
	wantProblem(t, err, "the certificate of the server is not trusted", false)
}

func TestSlowServer(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "0")
		_ = http.NewResponseController(w).Flush()
		<-release
	}))
	defer close(release)
	err := trusting(s, Options{Allow: anywhere, Timeout: 200 * time.Millisecond}).Get(t.Context(), s.URL, Expected{MaxSize: 10}, drain)
	wantProblem(t, err, "the server took too long", false)
}

// If the manager shuts down, that is not the source's fault.
func TestCancelled(t *testing.T) {
	s := serve(t, routes())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := trusting(s, Options{Allow: anywhere}).Get(ctx, s.URL+"/file", Expected{MaxSize: 10}, drain)
	var problem *DownloadError
	if !errors.Is(err, context.Canceled) || errors.As(err, &problem) {
		t.Errorf("got %v", err)
	}
}

// An error at the destination is not the source's fault.
func TestConsumersError(t *testing.T) {
	s := serve(t, routes())
	boom := errors.New("boom")
	err := trusting(s, Options{Allow: anywhere}).Get(t.Context(), s.URL+"/file", Expected{MaxSize: 10},
		func(context.Context, int64, io.Reader) error { return boom })
	var problem *DownloadError
	if !errors.Is(err, boom) || errors.As(err, &problem) {
		t.Errorf("got %v", err)
	}
}

// A gigabyte is not held in memory, and not read beyond the accepted size.
func TestLargeFileIsStreamed(t *testing.T) {
	const size = 256 << 20
	chunk := bytes.Repeat([]byte{'x'}, 1<<20)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for range size / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	var read int64
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for range b.N {
			err := trusting(s, Options{Allow: anywhere}).Get(b.Context(), s.URL, Expected{MaxSize: size}, func(_ context.Context, _ int64, body io.Reader) error {
				var err error
				read, err = io.Copy(struct{ io.Writer }{io.Discard}, body)
				return err
			})
			must.Succeed(b, err)
		}
	}).AllocedBytesPerOp()
	if read != size || allocated > 16<<20 {
		t.Errorf("read %d bytes and allocated %d", read, allocated)
	}
}

// FuzzHead checks, for any URL and any response header, that a file is fetched over HTTPS without a user name and
// password, and that its size is known and within the limit.
func FuzzHead(f *testing.F) {
	f.Add("https://files.example/a.png", 200, int64(10), "", int64(10))
	f.Add("https://u:p@files.example/", 206, int64(-1), "gzip", int64(0))
	f.Add("https:///a", 200, int64(-1), "identity", int64(5))
	f.Add("HTTPS://[::1%25en0]/", 200, int64(1<<62), "", int64(0))
	f.Fuzz(func(t *testing.T, address string, status int, length int64, coding string, stated int64) {
		u, err := url.Parse(address)
		if err == nil && check(u) == nil && (!strings.HasPrefix(strings.ToLower(address), "https://") || u.User != nil || u.Hostname() == "") {
			t.Errorf("%q is fetched", address)
		}
		header := http.Header{}
		header.Set("Content-Encoding", coding)
		const most = 1 << 30
		size, err := sizeOf(&http.Response{StatusCode: status, ContentLength: length, Header: header}, Expected{Size: stated, MaxSize: most})
		if err == nil && (size <= 0 || size > most || status != http.StatusOK || stated > 0 && size != stated) {
			t.Errorf("status %d, length %d, %d declared: %d bytes are accepted", status, length, stated, size)
		}
	})
}

func TestPage(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("0123456789"))
		case "/moved":
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		}
	}))
	for name, tc := range map[string]struct {
		reason, path string
		limit        int64
		allow        func(netip.Addr) error
		body         string
		whole        bool
		words        string
	}{
		"whole":     {"pages do not announce their size", "/page", 10, anywhere, "0123456789", true, ""},
		"beginning": {"the rest is not needed", "/page", 4, anywhere, "0123", false, ""},
		"redirect":  {"relative addresses in it refer to where it was found", "/moved", 10, anywhere, "0123456789", true, ""},
		"gone":      {"an error page is not the page", "/gone", 10, anywhere, "", false, "status 410"},
		"inside":    {"a user must not read the cluster's network", "/page", 10, nil, "", false, "public address"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trusting(s, Options{Allow: tc.allow}).Page(t.Context(), s.URL+tc.path, "text/html", tc.limit)
			if (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && (string(got.Body) != tc.body || got.Whole != tc.whole || got.Type != "text/html" || got.URL.Path != "/page") {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}
