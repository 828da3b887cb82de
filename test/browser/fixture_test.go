// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// fixture serves small pages that use the web application's scripts, under the application's Content Security Policy.
type fixture struct {
	URL string
	// store receives uploads at another origin, as in production.
	store *httptest.Server

	mu sync.Mutex
	// announced are the files announced to the server; stored are the uploaded files, by name.
	announced []announcement
	stored    map[string]stored
	// refuse are the statuses of the next announcements, and breakOff the statuses of the next uploads. Later ones
	// succeed.
	refuse, breakOff []int
	// partBytes is the part size for larger files; 0 for no parts. puts are the paths of all uploads. The next skip
	// uploads succeed, and the cut uploads after them break.
	partBytes int64
	puts      []string
	skip, cut int
	// resumed counts the requests for missing parts, and aborted lists the ids of aborted uploads.
	resumed int
	aborted []string
	// hold blocks uploads until it is closed; nil does not block any.
	hold chan struct{}
	// sent are the received forms.
	sent []url.Values
	// events are sent to the listeners. refused is the number of further listeners that get a 503 instead.
	events    chan string
	refused   int
	listeners int
	// connected is the current number of listeners.
	connected int
}

type announcement struct {
	Name string `json:"name"`
	Type string `json:"mime_type"`
	Size int64  `json:"size_bytes"`
}

type stored struct {
	contentType string
	size        int
}

// policy is the strictest policy that the scripts must support. It names the store, as in the application.
func (f *fixture) policy() string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; connect-src 'self' " + f.store.URL +
		"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// newFixture serves a page with this body.
func newFixture(body string) *fixture {
	GinkgoHelper()
	f := &fixture{stored: map[string]stored{}, events: make(chan string, 10)}
	f.store = httptest.NewServer(http.HandlerFunc(f.put))
	DeferCleanup(f.store.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { f.page(w, body) })
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServer(http.Dir(filepath.Join(checkout, "apiserver", "web", "assets")))))
	mux.HandleFunc("GET /look.css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		write(w, "[hidden] { display: none } [data-preview] > * { width: 3em } .only-image:not(form:has(#category-image:checked) *), .only-video:not(form:has(#category-video:checked) *) { display: none } li, [data-day], fieldset { min-height: 3em; border: 1px solid } main { max-width: 40em }")
	})
	mux.HandleFunc("GET /seen.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		write(w, `document.getElementById("seen").textContent = document.querySelector("time").textContent`)
	})
	mux.HandleFunc("POST /media", f.announce)
	mux.HandleFunc("POST /media/{id}/parts", f.resume)
	mux.HandleFunc("POST /media/{id}/finish", f.resume)
	mux.HandleFunc("POST /media/{id}/abort", f.abort)
	mux.HandleFunc("POST /form", f.form)
	mux.HandleFunc("POST /form/reschedule", f.form)
	mux.HandleFunc("GET /events", f.listen)
	mux.HandleFunc("GET /part", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		write(w, `<p>Brought <time data-show="both" datetime="2026-12-01T09:00:00Z">then</time></p>`)
	})
	server := httptest.NewServer(mux)
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.URL = server.URL
	return f
}

func write(w io.Writer, text string) {
	// The browser may have closed the connection.
	_, _ = io.WriteString(w, text)
}

func (f *fixture) page(w http.ResponseWriter, body string) {
	crop := ""
	if strings.Contains(body, `id="crop"`) {
		crop = `<script src="/assets/crop.js" type="module"></script>`
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", f.policy())
	fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<title>Fixture</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="htmx-config" content='{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,"historyCacheSize":0}'>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/look.css">
<script src="/assets/times.js"></script>
<script src="/assets/htmx.min.js" defer></script>
<script src="/assets/app.js" type="module"></script>
<script src="/assets/keys.js" type="module"></script>
<script src="/assets/lists.js" type="module"></script>
<script src="/assets/transfer.js" type="module"></script>
<script src="/assets/upload.js" type="module"></script>
<script src="/assets/files.js" type="module"></script>
<script src="/assets/compose.js" type="module"></script>
%s</head>
<body><main><h1>Fixture</h1>%s<p id="status" role="status"></p></main></body>
</html>`, crop, body)
}

// next removes and returns the first prepared status, or 200.
func next(answers *[]int) int {
	if len(*answers) == 0 {
		return http.StatusOK
	}
	first := (*answers)[0]
	*answers = (*answers)[1:]
	return first
}

func (f *fixture) announce(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status := next(&f.refuse); status != http.StatusOK {
		w.WriteHeader(status)
		write(w, `{"error":{"code":"VALIDATION_ERROR","message":"<b>too large</b>: at most 512 MB"}}`)
		return
	}
	var a announcement
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.announced = append(f.announced, a)
	id := fmt.Sprintf("m-%d", len(f.announced))
	answer := map[string]any{"id": id, "upload_url": f.store.URL + "/" + url.PathEscape(a.Name) + "?signature=1"}
	if f.partBytes > 0 && a.Size > f.partBytes {
		answer = f.parts(id, a.Size)
	}
	// The browser may have closed the connection.
	_ = json.NewEncoder(w).Encode(answer)
}

// parts returns the response for a file in parts, with the addresses of the parts that are not stored. The caller must
// hold the lock.
func (f *fixture) parts(id string, size int64) map[string]any {
	urls := []string{}
	for i := range (size-1)/f.partBytes + 1 {
		path := fmt.Sprintf("%s-%d", id, i)
		if _, ok := f.stored[path]; ok {
			urls = append(urls, "")
			continue
		}
		urls = append(urls, f.store.URL+"/"+path)
	}
	return map[string]any{"id": id, "upload": "u-" + id, "part_bytes": f.partBytes, "parts": urls}
}

// resume responds with the addresses of a file's missing parts, even if there are none.
func (f *fixture) resume(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in struct {
		Upload string `json:"upload"`
	}
	var number int
	_, err := fmt.Sscanf(r.PathValue("id"), "m-%d", &number)
	if err != nil || json.NewDecoder(r.Body).Decode(&in) != nil || in.Upload != "u-"+r.PathValue("id") {
		http.Error(w, "no such upload", http.StatusNotFound)
		return
	}
	f.resumed++
	w.Header().Set("Content-Type", "application/json")
	// The browser may have closed the connection.
	_ = json.NewEncoder(w).Encode(f.parts(r.PathValue("id"), f.announced[number-1].Size))
}

func (f *fixture) abort(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aborted = append(f.aborted, r.PathValue("id"))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"id": r.PathValue("id")}) // the browser may have closed the connection
}

// begunPuts returns the number of uploads of files or parts that have started.
func (f *fixture) begunPuts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.puts)
}

// abortedUploads returns the ids of the aborted uploads.
func (f *fixture) abortedUploads() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.aborted)
}

// cuts records an upload, and reports whether it breaks.
func (f *fixture) cuts(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts = append(f.puts, path)
	if f.skip > 0 {
		f.skip--
		return false
	}
	f.cut--
	return f.cut >= 0
}

// mend ends the outages.
func (f *fixture) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skip, f.cut = 0, 0
}

// put handles uploads to the store.
func (f *fixture) put(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{"Origin": "*", "Methods": "PUT", "Headers": "content-type"} {
		w.Header().Set("Access-Control-Allow-"+name, value)
	}
	w.Header().Set("Connection", "close") // a browser automatically repeats a request if a reused connection breaks
	if r.Method == http.MethodOptions {
		return
	}
	if f.cuts(strings.TrimPrefix(r.URL.Path, "/")) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	content, err := io.ReadAll(r.Body)
	f.mu.Lock()
	hold, status := f.hold, next(&f.breakOff)
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if err != nil || status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored[strings.TrimPrefix(r.URL.Path, "/")] = stored{r.Header.Get("Content-Type"), len(content)}
}

// form stores a form and shows its values.
func (f *fixture) form(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.sent = append(f.sent, r.PostForm)
	f.mu.Unlock()
	f.page(w, "<h2>Sent</h2><p>"+html.EscapeString(r.PostForm.Encode())+"</p>")
}

// forms returns the forms received so far.
func (f *fixture) forms() []url.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]url.Values{}, f.sent...)
}

// ids returns the file IDs. They depend on the order of arrival.
func (f *fixture) ids(names ...string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, name := range names {
		for i, announced := range f.announced {
			if announced.Name == name {
				ids = append(ids, fmt.Sprintf("m-%d", i+1))
			}
		}
	}
	return ids
}

// inStore returns the stored file.
func (f *fixture) inStore(name string) stored {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stored[name]
}

func (f *fixture) listen(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.listeners++
	refuse := f.refused > 0
	if refuse {
		f.refused--
	}
	f.mu.Unlock()
	if refuse {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	f.addConnected(1)
	defer f.addConnected(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	Expect(http.NewResponseController(w).Flush()).To(Succeed())
	for {
		select {
		case event, open := <-f.events:
			if !open {
				return
			}
			write(w, event)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fixture) listened() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners
}

func (f *fixture) addConnected(change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connected += change
}

// listening returns the current number of listeners.
func (f *fixture) listening() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connected
}
