// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/session"
)

const (
	site     = "https://herald.example"
	acme     = "team-acme"
	beta     = "team-beta"
	loopURI  = "http://127.0.0.1:33418/callback"
	verifier = "a-verifier-of-more-than-forty-three-characters-0123456789"
)

var (
	start = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	ada   = session.Session{ID: "session-of-ada", Person: access.Person{Name: "oidc:ada", Groups: []string{"oidc:marketing"}}}
	eve   = session.Session{ID: "session-of-eve", Person: access.Person{Name: "oidc:eve"}}
)

// keys seal as a replica does, and sign with a separate key.
type keys struct {
	*session.Sealer
	lasting string
	// missing simulates that no keys are loaded yet.
	missing bool
}

func (k *keys) Ready() error {
	if k.missing {
		return errors.New("no keys yet")
	}
	return nil
}

func (k *keys) Open(purpose, text string, v any) error {
	if k.missing {
		return session.ErrNotSealed
	}
	return k.Sealer.Open(purpose, text, v)
}

func (k *keys) Sign(purpose, text string) []byte {
	if k.lasting == "" {
		return nil
	}
	mac := hmac.New(sha256.New, []byte(k.lasting))
	mac.Write([]byte(purpose + "\x00" + text))
	return mac.Sum(nil)
}

// store is a fake Kubernetes API for grants, with a cache that is always current.
type store struct {
	removed []v1alpha1.OAuthGrantStatus // the status of each removed grant
	mu      sync.Mutex
	grants  map[string]*v1alpha1.OAuthGrant
	version int
	reads   int
	now     func() time.Time
	// forgetful simulates a cache that has not seen any grant yet.
	forgetful bool
	// starting simulates a replica whose cache has not synced.
	starting bool
}

func (s *store) HasSynced() bool { return !s.starting }

func gone(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "oauthgrants"}, name)
}

func (s *store) Get(namespace, name string) *v1alpha1.OAuthGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if grant := s.grants[namespace+"/"+name]; grant != nil && !s.forgetful {
		return grant.DeepCopy()
	}
	return nil
}

func (s *store) List(namespace string) (all []*v1alpha1.OAuthGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, grant := range s.grants {
		if namespace == "" || grant.Namespace == namespace {
			all = append(all, grant.DeepCopy())
		}
	}
	return all
}

func (s *store) ListLive(_ context.Context, namespace string) (all []v1alpha1.OAuthGrant, err error) {
	for _, grant := range s.List(namespace) {
		all = append(all, *grant)
	}
	return all, nil
}

func (s *store) Live(_ context.Context, namespace, name string) (*v1alpha1.OAuthGrant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if grant := s.grants[namespace+"/"+name]; grant != nil {
		return grant.DeepCopy(), nil
	}
	return nil, gone(name)
}

func (s *store) Create(_ context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := grant.DeepCopy()
	s.version++
	stored.UID, stored.ResourceVersion, stored.CreationTimestamp = types.UID("uid-"+strconv.Itoa(s.version)), strconv.Itoa(s.version), metav1.NewTime(s.now())
	stored.Status = v1alpha1.OAuthGrantStatus{} // a create does not store the status
	s.grants[grant.Namespace+"/"+grant.Name] = stored
	return stored.DeepCopy(), nil
}

func (s *store) write(grant *v1alpha1.OAuthGrant, change func(stored *v1alpha1.OAuthGrant)) (*v1alpha1.OAuthGrant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.grants[grant.Namespace+"/"+grant.Name]
	switch {
	case stored == nil:
		return nil, gone(grant.Name)
	case stored.ResourceVersion != grant.ResourceVersion:
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "oauthgrants"}, grant.Name, errors.New("written since"))
	}
	next := stored.DeepCopy()
	change(next)
	s.version++
	next.ResourceVersion = strconv.Itoa(s.version)
	s.grants[grant.Namespace+"/"+grant.Name] = next
	return next.DeepCopy(), nil
}

func (s *store) Update(_ context.Context, before, after *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return s.write(before, func(stored *v1alpha1.OAuthGrant) {
		stored.Spec, stored.Annotations = after.Spec, after.Annotations
	})
}

func (s *store) UpdateStatus(_ context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error) {
	return s.write(grant, func(stored *v1alpha1.OAuthGrant) { stored.Status = grant.Status })
}

func (s *store) Delete(_ context.Context, grant *v1alpha1.OAuthGrant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := s.grants[grant.Namespace+"/"+grant.Name]; stored != nil {
		s.removed = append(s.removed, stored.Status)
	}
	delete(s.grants, grant.Namespace+"/"+grant.Name)
	return nil
}

// roles are people's permissions, as "person namespace verb resource".
type roles map[string]bool

func (r roles) May(_ context.Context, who access.Person, namespace, verb, resource string, _ ...string) (bool, error) {
	return r[who.Name+" "+namespace+" "+verb+" "+resource], nil
}

func (r roles) give(who, namespace string, rights ...string) {
	for _, right := range rights {
		r[who+" "+namespace+" "+right] = true
	}
}

// reading and editing are the permissions of viewers and editors.
var (
	reading = []string{"list posts", "list connections"}
	editing = append(slices.Clone(reading), "create posts", "update posts", "create media")
)

// trail records the audit log.
type trail struct{ noted []string }

func (t *trail) Acted(_ context.Context, caller bridge.Caller, act bridge.Act, _ metav1.Object) {
	t.noted = append(t.noted, caller.Author+" "+string(act))
}

func (t *trail) Guarded(_ context.Context, _ metav1.Object, reason, _ string) {
	t.noted = append(t.noted, reason)
}

// world is an installation with two teams. Ada is an editor of one.
type world struct {
	*Server
	t      *testing.T
	clock  *clocktesting.FakeClock
	keys   *keys
	grants *store
	roles  roles
	trail  *trail
}

func newWorld(t *testing.T, edits ...func(*Config)) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	w := &world{
		t: t, clock: clock, roles: roles{}, trail: &trail{},
		keys:   &keys{Sealer: session.NewSealer(clock, session.NewSealingKey(start.Add(-time.Hour))), lasting: "a lasting key"},
		grants: &store{grants: map[string]*v1alpha1.OAuthGrant{}, now: clock.Now},
	}
	w.roles.give(ada.Person.Name, acme, editing...)
	config := Config{
		SiteURL: site, Keys: w.keys, Grants: w.grants, Access: w.roles, AuditLog: w.trail,
		Served: func(namespace string) bool { return namespace == acme || namespace == beta },
		Used:   func(*v1alpha1.OAuthGrant) {}, Clock: clock, Log: slog.New(slog.DiscardHandler),
	}
	for _, edit := range edits {
		edit(&config)
	}
	w.Server = New(config)
	return w
}

// answer is a response to a client.
type answer struct {
	status int
	header http.Header
	body   string
	// values are the fields of the JSON.
	values map[string]any
}

func (a answer) text(name string) string {
	text, _ := a.values[name].(string)
	return text
}

func (w *world) send(method, path, kind, body string, edits ...func(*http.Request)) answer {
	w.t.Helper()
	r := httptest.NewRequest(method, site+path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	for _, edit := range edits {
		edit(r)
	}
	out := httptest.NewRecorder()
	handler := w.Handler(path)
	if handler == nil {
		w.t.Fatalf("nothing serves %s", path)
	}
	handler.ServeHTTP(out, r)
	a := answer{status: out.Code, header: out.Header(), body: out.Body.String()}
	_ = json.Unmarshal(out.Body.Bytes(), &a.values)
	return a
}

func (w *world) post(path string, form url.Values) answer {
	w.t.Helper()
	return w.send(http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

// registerClient registers a client with redirect URIs.
func (w *world) registerClient(redirects ...string) string {
	w.t.Helper()
	body, _ := json.Marshal(clientMetadata{Name: "An agent", Redirects: redirects})
	made := w.send(http.MethodPost, RegisterPath, jsonType, string(body))
	if made.status != http.StatusCreated {
		w.t.Fatalf("register: %d %s", made.status, made.body)
	}
	return made.text("client_id")
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// question returns a client's valid authorization request.
func question(client string, edits ...func(url.Values)) url.Values {
	query := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {loopURI}, "state": {"a state"}, "scope": {"read draft publish"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "resource": {site + "/mcp"},
	}
	for _, edit := range edits {
		edit(query)
	}
	return query
}

func set(name string, values ...string) func(url.Values) {
	return func(v url.Values) {
		if len(values) == 0 {
			v.Del(name)
			return
		}
		v[name] = values
	}
}

// allowed lets Ada allow a client, and returns the code.
func (w *world) allowed(query url.Values, most bridge.Scope) string {
	w.t.Helper()
	asked, err := w.Read(w.t.Context(), query, ada.Person)
	if err != nil {
		w.t.Fatal(err)
	}
	location, err := w.Decide(w.t.Context(), ada, Decision{Sealed: w.Seal(asked, ada, acme), Allow: true, Most: most})
	if err != nil {
		w.t.Fatal(err)
	}
	return queryOf(w.t, location).Get("code")
}

func queryOf(t *testing.T, location string) url.Values {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func redemption(client, code string, edits ...func(url.Values)) url.Values {
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {loopURI}, "code_verifier": {verifier},
	}
	for _, edit := range edits {
		edit(form)
	}
	return form
}

func refreshing(client, token string, edits ...func(url.Values)) url.Values {
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}}
	for _, edit := range edits {
		edit(form)
	}
	return form
}

// connected returns a client with tokens.
func (w *world) connected(most bridge.Scope) (client string, tokens answer) {
	w.t.Helper()
	client = w.registerClient(loopURI)
	tokens = w.post(TokenPath, redemption(client, w.allowed(question(client), most)))
	if tokens.status != http.StatusOK {
		w.t.Fatalf("redeem: %d %s", tokens.status, tokens.body)
	}
	return client, tokens
}

// good reports whether an access token is valid.
func (w *world) good(token string) bool {
	w.t.Helper()
	_, err := w.Caller(w.t.Context(), token)
	if err == nil {
		return true
	}
	var known *bridge.Error
	if !errors.As(err, &known) || known.Code != bridge.CodeUnauthorized {
		w.t.Errorf("a token that is not good is an error of ours: %v", err)
	}
	return false
}

// only returns the single grant.
func (w *world) only() *v1alpha1.OAuthGrant {
	w.t.Helper()
	all := w.grants.List("")
	if len(all) != 1 {
		w.t.Fatalf("there are %d grants", len(all))
	}
	return all[0]
}

// spoiled returns text with a different end.
func spoiled(text string) string {
	end := "AA"
	if strings.HasSuffix(text, end) {
		end = "QQ"
	}
	return text[:len(text)-len(end)] + end
}
