// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/test/sessiontest"
)

var ada = access.Person{Name: "oidc:ada@example.com", Groups: []string{"oidc:marketing"}, DisplayName: "Ada"}

// replica runs a manager on the Secret, in a synctest bubble, where the real clock shows the bubble's time.
func replica(t *testing.T, secrets session.SecretClient, edits ...func(*session.Options)) *session.Manager {
	t.Helper()
	o := session.Options{
		Secrets: secrets, Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}
	for _, edit := range edits {
		edit(&o)
	}
	m := session.NewManager(o)
	go m.Run(t.Context())
	synctest.Wait()
	return m
}

// bubble runs a test with synctest's fake time.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// pass advances the time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of synctest
	synctest.Wait()
}

// signIn returns the session cookie that a manager issues.
func signIn(t *testing.T, m *session.Manager, p access.Person) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	if _, err := m.Issue(w, p); err != nil {
		t.Fatal(err)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("got %d cookies", len(cookies))
	}
	return cookies[0]
}

func with(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	return r
}

func TestCookie(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		secure bool
		want   string
	}{
		"by HTTPS":  {"neither other hosts nor unencrypted pages can set it", true, "__Host-herald_session"},
		"localhost": {"browsers reject secure cookies over plain HTTP", false, "herald_session"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := replica(t, sessiontest.New(), func(o *session.Options) { o.Secure = tc.secure })
				cookie := signIn(t, m, ada)
				if cookie.Name != tc.want || cookie.Secure != tc.secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" ||
					cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != int(session.Life.Seconds()) {
					t.Errorf("%s: got %+v", tc.reason, cookie)
				}
			})
		})
	}
}

func TestSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := replica(t, sessiontest.New())
		cookie := signIn(t, m, ada)
		got, ok := m.Read(with(cookie))
		if !ok || got.Person.Name != ada.Name || len(got.Person.Groups) != 1 || got.Person.Shown() != "Ada" || got.ID == "" {
			t.Fatalf("got %+v, %v", got, ok)
		}
		if _, ok := m.Read(with()); ok {
			t.Error("a request without a cookie has a session")
		}
		again, _ := m.Read(with(signIn(t, m, ada)))
		if again.ID == got.ID {
			t.Error("two sign-ins have the same id, so data bound to one session would outlive it")
		}
		w := httptest.NewRecorder()
		m.Clear(w)
		if cleared := w.Result().Cookies()[0]; cleared.Name != cookie.Name || cleared.MaxAge >= 0 || cleared.Value != "" {
			t.Errorf("signing out here leaves %+v", cleared)
		}
	})
}

// TestLife follows a session through its 12 hours.
func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := replica(t, sessiontest.New())
		cookie := signIn(t, m, ada)
		handler := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := access.PersonFrom(r.Context()); ok {
				fmt.Fprint(w, p.Name)
			}
		}))
		for hour := range 13 {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, with(cookie))
			renewed := w.Result().Cookies()
			switch {
			case hour < 12 && w.Body.String() != ada.Name:
				t.Errorf("after %d hours the user is %q", hour, w.Body)
			case hour == 12 && (w.Body.String() != "" || len(renewed) > 0):
				t.Errorf("after 12 hours the session is valid for %q", w.Body)
			case hour == 0 && len(renewed) != 0:
				t.Error("a new cookie is renewed")
			case hour > 0 && hour < 12:
				if len(renewed) != 1 || renewed[0].MaxAge > (12-hour)*3600 {
					t.Fatalf("after %d hours the cookie is renewed as %+v: its end must stay", hour, renewed)
				}
				cookie = renewed[0]
			}
			pass(time.Hour)
		}
	})
}

// TestFixation verifies that a sign-in replaces a session planted by an attacker. Cookies from another installation, or
// issued for another purpose, are not accepted as sessions.
func TestFixation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, elsewhere := replica(t, sessiontest.New()), replica(t, sessiontest.New())
		planted := signIn(t, m, access.Person{Name: "oidc:mallory@example.com"})
		before, _ := m.Read(with(planted))
		w := httptest.NewRecorder()
		issued, err := m.Issue(w, ada)
		if err != nil || issued.ID == before.ID || w.Result().Cookies()[0].Value == planted.Value {
			t.Errorf("the planted session became Ada's: %+v, %v", issued, err)
		}
		if _, ok := m.Read(with(signIn(t, elsewhere, ada))); ok {
			t.Error("another installation's cookie was accepted")
		}
		forged := *planted
		forged.Value = m.Seal("oauth state", map[string]any{"p": ada}, time.Hour)
		if _, ok := m.Read(with(&forged)); ok {
			t.Error("a text that was sealed for another purpose is a session")
		}
		forged.Value = "eyJwIjp7Im4iOiJhZGEifX0"
		if _, ok := m.Read(with(&forged)); ok {
			t.Error("a text that was never sealed is a session")
		}
	})
}

func TestSignOutEverywhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		here, there := replica(t, secrets), replica(t, secrets)
		old, other := signIn(t, here, ada), signIn(t, there, access.Person{Name: "oidc:bob@example.com"})
		if err := here.SignOutEverywhere(t.Context(), ada.Name); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for name, m := range map[string]*session.Manager{"here": here, "there": there} {
			if _, ok := m.Read(with(old)); ok {
				t.Errorf("%s the session is still valid", name)
			}
			if _, ok := m.Read(with(other)); !ok {
				t.Errorf("%s another user was signed out", name)
			}
			if _, ok := m.Read(with(signIn(t, m, ada))); !ok {
				t.Errorf("%s users cannot sign in again", name)
			}
		}
		second := signIn(t, there, ada)
		if err := there.SignOutEverywhere(t.Context(), ada.Name); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := here.Read(with(second)); ok {
			t.Error("a second sign-out had no effect")
		}
		third := signIn(t, here, ada)
		pass(11 * time.Hour)
		if _, ok := here.Read(with(third)); !ok {
			t.Error("a session from after the sign-out ended early")
		}
		pass(3 * time.Hour)
		fourth := signIn(t, here, ada)
		if err := there.SignOutEverywhere(t.Context(), "oidc:bob@example.com"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if text := string(secrets.Data()["signedOut"]); strings.Contains(text, ada.Name) {
			t.Errorf("expired data is still stored: %s", text)
		}
		if _, ok := here.Read(with(fourth)); !ok {
			t.Error("the forgotten user's session ended")
		}
	})
}

// TestHolds verifies that a long response can check whether its session is still valid, and is notified when it may
// have become invalid.
func TestHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(t *testing.T, secrets *sessiontest.Secrets, there *session.Manager)
		holds  bool
		news   bool
	}{
		"Untouched": {"an unchanged session", func(*testing.T, *sessiontest.Secrets, *session.Manager) { pass(time.Hour) }, true, false},
		"SignedOut": {"at another replica, for all devices", func(t *testing.T, _ *sessiontest.Secrets, there *session.Manager) {
			if err := there.SignOutEverywhere(t.Context(), ada.Name); err != nil {
				t.Fatal(err)
			}
		}, false, true},
		"Another": {"another user signed out", func(t *testing.T, _ *sessiontest.Secrets, there *session.Manager) {
			if err := there.SignOutEverywhere(t.Context(), "oidc:bob@example.com"); err != nil {
				t.Fatal(err)
			}
		}, true, true},
		"KeysGone": {"an administrator signs out all users", func(_ *testing.T, secrets *sessiontest.Secrets, _ *session.Manager) {
			secrets.Put(map[string][]byte{})
		}, false, true},
		"Over": {"sessions expire", func(*testing.T, *sessiontest.Secrets, *session.Manager) { pass(session.Life) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				secrets := sessiontest.New()
				here, there := replica(t, secrets), replica(t, secrets)
				s, ok := here.Read(with(signIn(t, here, ada)))
				news := here.Changed()
				if !ok || !here.IsValid(s) {
					t.Fatal("a new session is invalid")
				}
				tc.act(t, secrets, there)
				synctest.Wait()
				heard := false
				select {
				case <-news:
					heard = true
				default:
				}
				if here.IsValid(s) != tc.holds || tc.news && !heard {
					t.Errorf("%s: valid: %v, notified: %v", tc.reason, here.IsValid(s), heard)
				}
			})
		})
	}
}

func TestKeys(t *testing.T) {
	t.Run("concurrently started replicas agree on the keys", func(t *testing.T) {
		for name, secrets := range map[string]*sessiontest.Secrets{"empty": sessiontest.New(), "missing": sessiontest.Missing()} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					managers := make([]*session.Manager, 8)
					for i := range managers {
						managers[i] = session.NewManager(session.Options{
							Secrets: secrets, Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true,
							Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
						})
						go managers[i].Run(t.Context())
					}
					synctest.Wait()
					for _, m := range managers {
						if _, ok := m.Read(with(signIn(t, managers[0], ada))); !ok {
							t.Error("a replica rejects another's session")
						}
					}
					if secrets.Writes() != 1 {
						t.Errorf("the Secret was written %d times", secrets.Writes())
					}
				})
			})
		}
	})
	t.Run("keys are replaced without affecting sessions", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			secrets := sessiontest.New()
			here, there := replica(t, secrets), replica(t, secrets)
			first := string(secrets.Data()["keys"])
			pass(7*24*time.Hour - 6*time.Hour)
			cookie := signIn(t, here, ada)
			pass(6*time.Hour + 11*time.Minute)
			if string(secrets.Data()["keys"]) == first {
				t.Fatal("no key was created after seven days")
			}
			for _, m := range []*session.Manager{here, there} {
				if _, ok := m.Read(with(cookie)); !ok {
					t.Error("a new key ended a session")
				}
				if _, ok := there.Read(with(signIn(t, m, ada))); !ok {
					t.Error("the new key is not shared")
				}
			}
			pass(8 * 24 * time.Hour)
			if text := string(secrets.Data()["keys"]); strings.Count(text, `"id"`) > 2 {
				t.Errorf("expired keys are still stored: %s", text)
			}
		})
	})
	t.Run("that an administrator removes end every session", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			secrets := sessiontest.New()
			m := replica(t, secrets)
			cookie := signIn(t, m, ada)
			secrets.Put(nil)
			synctest.Wait()
			if _, ok := m.Read(with(cookie)); ok || m.Ready() != nil {
				t.Errorf("the session is still valid (%v), or the manager is not ready: %v", ok, m.Ready())
			}
		})
	})
	t.Run("that cannot be read are not replaced", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			secrets := sessiontest.New()
			secrets.Put(map[string][]byte{"keys": []byte("{hunter2")})
			m := replica(t, secrets)
			err := m.Ready()
			if err == nil || !strings.Contains(err.Error(), `its key "keys"`) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want the remedy without the Secret's content", err)
			}
			if secrets.Writes() != 0 {
				t.Error("the user's data was overwritten")
			}
		})
	})
}

func TestKubernetesUnavailable(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, sessiontest.Name, errors.New("no such role"))
	t.Run("from the start", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			secrets := sessiontest.New()
			secrets.Fail(func(string) error { return forbidden })
			m := replica(t, secrets)
			err := m.Ready()
			if err == nil || !strings.Contains(err.Error(), "herald-system/herald-web") || !strings.Contains(err.Error(), "no such role") ||
				!strings.Contains(err.Error(), "web.enabled: false") {
				t.Errorf("got %v; it must name the Secret, the reason and the remedy", err)
			}
			if _, err := m.Issue(httptest.NewRecorder(), ada); err == nil {
				t.Error("a session without a key")
			}
			secrets.Fail(nil)
			pass(10 * time.Second)
			if err := m.Ready(); err != nil {
				t.Errorf("the role exists, but the manager failed: %v", err)
			}
		})
	})
	t.Run("later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			secrets := sessiontest.New()
			m := replica(t, secrets)
			cookie := signIn(t, m, ada)
			secrets.Fail(func(string) error { return forbidden })
			pass(5 * time.Hour)
			if _, ok := m.Read(with(cookie)); !ok {
				t.Error("sessions end with the Kubernetes API")
			}
			if _, ok := m.Read(with(signIn(t, m, ada))); !ok {
				t.Error("users cannot sign in")
			}
			if err := m.SignOutEverywhere(t.Context(), ada.Name); err == nil {
				t.Error("a sign-out that could not be stored must return an error")
			}
		})
	})
}

func TestTooManyGroups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := replica(t, sessiontest.New())
		crowd := ada
		for i := range 300 {
			crowd.Groups = append(crowd.Groups, fmt.Sprintf("oidc:group-%04d", i))
		}
		w := httptest.NewRecorder()
		if _, err := m.Issue(w, crowd); !errors.Is(err, session.ErrTooLarge) || len(w.Result().Cookies()) > 0 {
			t.Errorf("got %v: browsers drop large cookies, which would sign the user out silently", err)
		}
	})
}

// TestLinks verifies that of many attempts with one link, at two replicas, only one succeeds.
func TestLinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		here, there := replica(t, secrets), replica(t, secrets)
		token, err := session.AddLink(t.Context(), secrets, sessiontest.Name, clock.RealClock{}, 15*time.Minute)
		if err != nil || len(token) != 43 {
			t.Fatalf("got %q, %v: want 256 bits", token, err)
		}
		for field, text := range secrets.Data() {
			if strings.Contains(string(text), token) {
				t.Errorf("the token itself is stored in %s", field)
			}
		}
		for range 3 {
			if err := here.CheckLink(t.Context(), token); err != nil {
				t.Errorf("looking at a link uses it up: %v", err)
			}
		}
		var signedIn, used sync.Map
		var tries sync.WaitGroup
		for i := range 20 {
			tries.Go(func() {
				m := here
				if i%2 == 0 {
					m = there
				}
				switch err := m.UseLink(t.Context(), token); {
				case err == nil:
					signedIn.Store(i, true)
				case errors.Is(err, session.ErrLinkUsed):
					used.Store(i, true)
				default:
					t.Errorf("got %v", err)
				}
			})
		}
		tries.Wait()
		count := func(m *sync.Map) (n int) { m.Range(func(any, any) bool { n++; return true }); return n }
		if count(&signedIn) != 1 || count(&used) != 19 {
			t.Errorf("%d of 20 attempts signed in, %d failed with a used link", count(&signedIn), count(&used))
		}
	})
}

func TestInvalidLinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		m := replica(t, secrets)
		add := func(valid time.Duration) string {
			token, err := session.AddLink(t.Context(), secrets, sessiontest.Name, clock.RealClock{}, valid)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		used, short := add(time.Hour), add(time.Minute)
		if err := m.UseLink(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		for name, tc := range map[string]struct {
			token string
			want  error
		}{
			"used":      {used, session.ErrLinkUsed},
			"at an end": {short, session.ErrLinkExpired},
			"unknown":   {strings.Repeat("A", 43), session.ErrLinkUnknown},
			"too short": {"A", session.ErrLinkUnknown},
			"empty":     {"", session.ErrLinkUnknown},
			"a hash":    {strings.Repeat("0", 64), session.ErrLinkUnknown},
		} {
			if err := m.CheckLink(t.Context(), tc.token); !errors.Is(err, tc.want) {
				t.Errorf("%s: a look: %v", name, err)
			}
			if err := m.UseLink(t.Context(), tc.token); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		pass(26 * time.Hour)
		add(time.Minute)
		if text := string(secrets.Data()["links"]); strings.Count(text, "until") != 1 {
			t.Errorf("expired links are still stored: %s", text)
		}
		for range 150 {
			add(time.Hour)
		}
		if text := string(secrets.Data()["links"]); strings.Count(text, "until") > 101 {
			t.Errorf("%d links are stored, more than the Secret's limit", strings.Count(text, "until"))
		}
	})
}

// TestLinkBeforeKeys verifies that an administrator may create a link before the apiserver has created the keys.
func TestLinkBeforeKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		token, err := session.AddLink(t.Context(), secrets, sessiontest.Name, clock.RealClock{}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := replica(t, secrets).UseLink(t.Context(), token); err != nil {
			t.Error(err)
		}
		_, err = session.AddLink(t.Context(), sessiontest.Missing(), sessiontest.Name, clock.RealClock{}, time.Hour)
		if err == nil || !strings.Contains(err.Error(), "installed in this namespace") {
			t.Errorf("in another namespace: %v", err)
		}
	})
}

// TestSign verifies that replicas share the signing key, and that it does not change when the session keys are rotated.
func TestSign(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		unready := session.NewManager(session.Options{
			Secrets: sessiontest.Missing(), Name: sessiontest.Name, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		})
		if unready.Sign("a", "text") != nil {
			t.Error("got a code without keys")
		}
		first, second := replica(t, secrets), replica(t, secrets)
		code := first.Sign("a", "text")
		if len(code) == 0 || !bytes.Equal(second.Sign("a", "text"), code) {
			t.Errorf("the replicas do not agree: %x", code)
		}
		for _, other := range [][]byte{first.Sign("b", "text"), first.Sign("a", "other"), first.Sign("a\x00", "text")} {
			if bytes.Equal(other, code) {
				t.Error("the code is valid for another purpose")
			}
		}
		pass(60 * 24 * time.Hour)
		if !bytes.Equal(first.Sign("a", "text"), code) {
			t.Error("the key was replaced")
		}
	})
}

// TestSignAfterUpgrade verifies that a Secret from an older version gets the signing key immediately.
func TestSignAfterUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		secrets := sessiontest.New()
		replica(t, secrets)
		data := secrets.Data()
		delete(data, "lasting")
		secrets.Put(data)
		pass(time.Second)
		if replica(t, secrets).Sign("a", "text") == nil {
			t.Error("the manager has no keys")
		}
	})
}
