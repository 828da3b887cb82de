// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulator holds the parts that the simulators of all platforms share: options, account profiles, tokens in
// requests, and request and response bodies.
package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// Options are the dependencies of a simulator.
type Options struct {
	Store *state.Store
	// Blobs stores the received files.
	Blobs  *blobs.Store
	Gate   *faults.Gate
	Clock  clock.PassiveClock
	Logger *slog.Logger
	// SiteURL returns the sandbox's address for browsers, and APIURL its address for the client of the request; both
	// without a trailing slash.
	SiteURL, APIURL func(*http.Request) string
	// Lenient ignores unknown parameters and fields on the platforms that ignore them.
	Lenient bool
	// PlainHosts lists the hosts that may serve files over plain HTTP, in addition to this machine.
	PlainHosts []string
}

// Form is the required format of a name.
type Form struct {
	Pattern *regexp.Regexp
	// Words is the human-readable format, used in error messages, such as "an account id on X is a number of up to 19
	// digits".
	Words string
}

// Profile describes the accounts of a platform.
type Profile struct {
	// Platform is the platform's name in the control API and the first segment of its paths.
	Platform string
	// Label is the platform's display name.
	Label string
	// ID and Username are the formats of account ids and usernames.
	ID, Username Form
	// Prefix is the prefix of usernames that are derived from ids.
	Prefix string
	// Grant returns the account owner's grant.
	Grant func(state.Account) state.Terms
	// Demo is the initial account, with well-known token strings: anyone who reaches the sandbox may use them.
	Demo                    state.Account
	DemoAccess, DemoRefresh string
}

// Name returns the platform's name in the control API.
func (p Profile) Name() string { return p.Platform }

// Title returns the platform's display name.
func (p Profile) Title() string { return p.Label }

// Demo returns the account that exists from the start on a platform.
func Demo(platform, id, username string) state.Account {
	return state.Account{Key: state.Key{Platform: platform, ID: id}, Username: username, DisplayName: "Herald Demo"}
}

// Terms returns the grant of an account's owner.
func (p Profile) Terms(a state.Account) state.Terms { return p.Grant(a) }

// NewAccess returns an account's new access token, or "" for a random one. Platforms whose tokens have a form of their
// own override it.
func (Profile) NewAccess(state.Account) string { return "" }

// CheckAccount returns an error if a test cannot create such an account.
func (p Profile) CheckAccount(id, username string) error {
	if !p.ID.Pattern.MatchString(id) {
		return fmt.Errorf("%s", p.ID.Words)
	}
	if !p.Username.Pattern.MatchString(username) {
		return fmt.Errorf("%s", p.Username.Words)
	}
	return nil
}

// DefaultUsername derives a username from an account ID: from its number, or from a hash if it is not a number.
func (p Profile) DefaultUsername(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(id)) // a hash never fails
		n = sum.Sum64()
	}
	return p.Prefix + strconv.FormatUint(n, 36)
}

// Avatar returns the address of an account's picture.
func (o Options) Avatar(r *http.Request, a state.Account) string {
	return o.SiteURL(r) + "/_assets/avatar/" + a.Platform + "/" + a.ID + ".svg"
}

// File returns the address of a file of a post.
func (o Options) File(r *http.Request, file state.Media) string {
	return o.SiteURL(r) + "/_media/" + file.SHA256
}

// MediaOf returns the post's entry for a file.
func MediaOf(b blobs.Blob) state.Media {
	return state.Media{SHA256: b.SHA256, Bytes: b.Bytes, MIMEType: b.MIMEType}
}

// IsAddress reports whether text is an absolute http or https address.
func IsAddress(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// BearerToken returns the token of the Authorization header, or "". schemes are the platform's accepted schemes in
// addition to Bearer.
func BearerToken(r *http.Request, schemes ...string) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	for _, known := range append(schemes, "Bearer") {
		if found && strings.EqualFold(scheme, known) {
			return token
		}
	}
	return ""
}

// BearerAccount returns a function that maps a request to the account of its access token, even an expired one.
func (o Options) BearerAccount(platform string) func(*faults.Request) string {
	return func(r *faults.Request) string {
		bearer, ok := o.Store.Bearer(BearerToken(r.Request))
		if !ok || bearer.Account.Platform != platform {
			return ""
		}
		return bearer.Account.ID
	}
}

// Authorized returns the account and the bearer of a request's access token. It returns false if the token is missing,
// unknown, expired, or for another platform.
func (o Options) Authorized(r *faults.Request, platform string) (state.Account, state.Bearer, bool) {
	bearer, ok := o.Store.Bearer(BearerToken(r.Request))
	account, known := o.Store.Account(bearer.Account)
	return account, bearer, ok && known && account.Platform == platform && !bearer.Expired(o.Clock.Now())
}

// ReadForm reads a form body. It returns false for other bodies.
func ReadForm(r *faults.Request) (url.Values, bool) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, false
	}
	values, err := url.ParseQuery(string(r.Content))
	return values, err == nil
}

// ReadFormOrJSON is like ReadForm, for an endpoint that also accepts the fields as a JSON object of strings.
func ReadFormOrJSON(r *faults.Request) (url.Values, bool) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return ReadForm(r)
	}
	var fields map[string]string
	if err := json.Unmarshal(r.Content, &fields); err != nil {
		return nil, false
	}
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	return values, true
}

// FormAccount returns a function that maps a request to a token endpoint to the account of its refresh token.
func (o Options) FormAccount(platform string) func(*faults.Request) string {
	return func(r *faults.Request) string {
		values, _ := ReadFormOrJSON(r)
		for _, token := range []string{values.Get("refresh_token"), values.Get("token")} {
			if owner, ok := o.Store.RefreshOwner(token); ok && owner.Platform == platform {
				return owner.ID
			}
		}
		if bearer, ok := o.Store.Bearer(values.Get("token")); ok && bearer.Account.Platform == platform {
			return bearer.Account.ID
		}
		return ""
	}
}

// Rotate exchanges a platform's refresh token. It returns false if the token is not valid. It logs an error before
// returning it.
func (o Options) Rotate(p Profile, refresh string) (tokens state.Tokens, owner state.Key, ok bool, err error) {
	owner, ok = o.Store.RefreshOwner(refresh)
	if !ok || owner.Platform != p.Platform {
		return state.Tokens{}, owner, false, nil
	}
	tokens, ok, err = o.Store.Rotate(refresh, p.Terms)
	if err != nil {
		o.Logger.Error("a token could not be kept", "platform", p.Platform, "account", owner.ID, "error", err)
	}
	return tokens, owner, ok, err
}

// Seconds returns the number of seconds until a time, rounded.
func (o Options) Seconds(until time.Time) int64 {
	return int64(until.Sub(o.Clock.Now()).Round(time.Second) / time.Second)
}

// WriteJSON writes a JSON body. It does not escape <, > and &: JSON does not require it, and neither do the platforms.
func WriteJSON(w http.ResponseWriter, status int, contentType string, body any) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(content.Bytes()) // the client may have disconnected; the action is not undone
}

// Locks holds one mutex per key. The zero value is ready to use.
type Locks struct{ byKey sync.Map }

// Of returns the mutex of a key.
func (l *Locks) Of(key string) *sync.Mutex {
	lock, _ := l.byKey.LoadOrStore(key, &sync.Mutex{})
	out, _ := lock.(*sync.Mutex)
	return out
}

// Lock locks a key and returns its unlock function.
func (l *Locks) Lock(key string) (unlock func()) {
	lock := l.Of(key)
	lock.Lock()
	return lock.Unlock
}

// Decode decodes exactly one JSON value and rejects unknown fields.
func Decode(content []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// Range is the byte range of a Content-Range header.
type Range struct{ First, Last, Total int64 }

var rangePattern = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})$`)

// ReadRange reads the Content-Range header of a chunk. It returns false if the header is missing or invalid.
func ReadRange(r *http.Request) (Range, bool) {
	found := rangePattern.FindStringSubmatch(r.Header.Get("Content-Range"))
	if found == nil {
		return Range{}, false
	}
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(found[i+1], 10, 64) // 18 digits always fit
	}
	return Range{First: n[0], Last: n[1], Total: n[2]}, n[0] <= n[1] && n[1] < n[2]
}
