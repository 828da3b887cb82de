// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// published is a server on this machine that serves a client's document.
type published struct {
	*httptest.Server
	asked  atomic.Int64
	answer func(w http.ResponseWriter, id string)
}

func publish(t *testing.T, answer func(w http.ResponseWriter, id string)) *published {
	t.Helper()
	p := &published{answer: answer}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("the request carries %v", r.Header)
		}
		p.answer(w, p.URL+r.URL.Path)
	}))
	p.Config.ErrorLog = nil
	t.Cleanup(p.Close)
	return p
}

// trusting lets a Server fetch documents from this machine.
func trusting(p *published, loopback bool) func(*Config) {
	return func(c *Config) {
		c.Roots = x509.NewCertPool()
		c.Roots.AddCert(p.Certificate())
		c.LoopbackClients = loopback
	}
}

func document(id, more string) string {
	return fmt.Sprintf(`{"client_id":%q,"client_name":"The agent","redirect_uris":[%q]%s}`, id, loopURI, more)
}

func sends(text string, header ...string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", jsonType)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(text, "ID", id)))
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	p := publish(t, func(w http.ResponseWriter, id string) {
		sends(document(id, `,"client_uri":"https://agent.example","jwks":{},"token_endpoint_auth_method":"none"`), "Cache-Control", "max-age=60")(w, id)
	})
	w := newWorld(t, trusting(p, true))
	id := p.URL + "/client.json"
	for range 3 {
		asked, err := w.Read(t.Context(), question(id), ada.Person)
		if err != nil {
			t.Fatal(err)
		}
		if c := asked.Client; !c.Verified || c.Name != "The agent" || c.ID != id || "https://"+c.Host() != p.URL || c.URI != "https://agent.example" {
			t.Errorf("the client is %+v", c)
		}
	}
	w.clock.Step(time.Minute + time.Second)
	if _, err := w.Read(t.Context(), question(id), ada.Person); err != nil || p.asked.Load() != 2 {
		t.Errorf("sent %d requests, want two because the first is cached for a minute; %v", p.asked.Load(), err)
	}
	// The token requests use the same id, and cause no fetch.
	code := w.allowed(question(id), "read")
	if got := w.post(TokenPath, redemption(id, code)); got.status != http.StatusOK || p.asked.Load() != 2 {
		t.Errorf("%d %s, sent %d requests", got.status, got.body, p.asked.Load())
	}
}

// TestThreatDocuments verifies that an ambiguous document, or another client's, is rejected.
func TestThreatDocuments(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, id string){
		"of another":    sends(document("https://agent.example/client.json", "")),
		"without an id": sends(`{"redirect_uris":["` + loopURI + `"]}`),
		"of the parent": sends(document("ID/..", "")),
		"with a secret": func(w http.ResponseWriter, id string) {
			sends(document(id, `,"token_endpoint_auth_method":"client_secret_post"`))(w, id)
		},
		"with a key": func(w http.ResponseWriter, id string) {
			sends(document(id, `,"token_endpoint_auth_method":"private_key_jwt"`))(w, id)
		},
		"without address": sends(`{"client_id":"ID"}`),
		"with a script":   sends(`{"client_id":"ID","redirect_uris":["javascript:alert(1)"]}`),
		"long": func(w http.ResponseWriter, id string) {
			sends(document(id, `,"x":"`+strings.Repeat("a", maxDocument)+`"`))(w, id)
		},
		"a page":    sends(`{"client_id":"ID","redirect_uris":["`+loopURI+`"]}`, "Content-Type", "text/html"),
		"no JSON":   sends("<html>"),
		"a list":    sends("[]"),
		"not there": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) },
		"failing":   func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusInternalServerError) },
		"elsewhere": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
			w.WriteHeader(http.StatusFound)
		},
	} {
		p := publish(t, answer)
		w := newWorld(t, trusting(p, true))
		for range 2 {
			_, err := w.Read(t.Context(), question(p.URL+"/client.json"), ada.Person)
			if _, ok := errors.AsType[*PageError](err); !ok {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p.asked.Load() != 1 {
			t.Errorf("%s: sent %d requests, although the last one just failed", name, p.asked.Load())
		}
	}
	// A host that looks like another one is not contacted: the page would present it as the agent's origin.
	w := newWorld(t)
	for id, reason := range map[string]string{
		"https://cl%D0%B0ude.ai/c.json":                  "a Cyrillic letter",
		"https://claude%E2%80%8B.ai/c.json":              "a blank that cannot be seen",
		"https://x%E2%80%AEia.edualc/c.json":             "another direction of reading",
		"https://claude.ai%EF%BC%8F.evil.example/c.json": "a wide slash",
		"https://claude.ai%E3%80%82evil.example/c.json":  "an ideographic full stop",
		"https://claude.ai,evil.example/c.json":          "two hosts",
	} {
		if err := w.documents.checkID(id); err == nil {
			t.Errorf("%s may be the id of a client: %s", id, reason)
		}
	}
}

// TestThreatSSRF verifies that Herald sends no requests to internal addresses.
func TestThreatSSRF(t *testing.T) {
	t.Parallel()
	p := publish(t, func(w http.ResponseWriter, id string) { sends(document(id, ""))(w, id) })
	w := newWorld(t, trusting(p, false))
	messages := map[string]bool{}
	for _, id := range []string{
		p.URL + "/client.json", "https://localhost/client.json", "https://10.96.0.1/client.json", "https://169.254.169.254/latest/meta-data", "https://[::1]/client.json",
		"https://[::ffff:127.0.0.1]/client.json", "https://0.0.0.0/client.json",
	} {
		_, err := w.Read(t.Context(), question(id), ada.Person)
		var shown *PageError
		if !errors.As(err, &shown) {
			t.Fatalf("%s: %v", id, err)
		}
		messages[strings.ReplaceAll(shown.Message, id, "ID")] = true
	}
	if p.asked.Load() != 0 {
		t.Error("a loopback server received a request")
	}
	if len(messages) != 1 {
		t.Errorf("the error messages reveal internal addresses: %v", messages)
	}
	for _, id := range []string{
		"http://agent.example/client.json", "file:///etc/passwd", "gopher://agent.example/x", "https://user:password@agent.example/c", "https://agent.example/c#f",
		"https://agent.example", "https://agent.example/", "https://agent.example/a/../b", "https://agent.example/./b", "https:///c", "https://agent.example/c d", `https://agent.example\c`,
	} {
		if err := w.documents.checkID(id); err == nil {
			t.Errorf("%s may be the id of a client", id)
		}
	}
	// With the setting for trials, only this machine is allowed.
	open := newWorld(t, trusting(p, true))
	if _, err := open.Read(t.Context(), question(p.URL+"/client.json"), ada.Person); err != nil {
		t.Error(err)
	}
	if _, err := open.Read(t.Context(), question("https://10.96.0.1/client.json"), ada.Person); err == nil {
		t.Error("a cluster address received a request")
	}
}

// TestThreatFetchFlood verifies that a user causes at most maxFetches fetches per minute.
func TestThreatFetchFlood(t *testing.T) {
	t.Parallel()
	p := publish(t, func(w http.ResponseWriter, id string) { sends(document(id, ""))(w, id) })
	w := newWorld(t, trusting(p, true))
	for i := range maxFetches + 10 {
		_, _ = w.Read(t.Context(), question(fmt.Sprintf("%s/client-%d.json", p.URL, i)), ada.Person)
	}
	if p.asked.Load() != maxFetches {
		t.Errorf("sent %d requests", p.asked.Load())
	}
	if _, err := w.Read(t.Context(), question(p.URL+"/client-0.json"), ada.Person); err != nil {
		t.Errorf("a remembered document: %v", err)
	}
	if _, err := w.Read(t.Context(), question(p.URL+"/client-x.json"), eve.Person); err != nil {
		t.Errorf("another person: %v", err)
	}
}

func TestLifeOfDocument(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": documentLife, "public": documentLife, "max-age=3600": time.Hour, "public, MAX-AGE=3600, immutable": time.Hour, "max-age=99999999": longestLife,
		"max-age=99999999999999999999": documentLife, "no-store": failureLife, "no-cache, max-age=60": failureLife, "max-age=0": failureLife, "max-age=-1": documentLife,
	} {
		if got := lifeOf(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
