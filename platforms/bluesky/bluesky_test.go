// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

const (
	did      = "did:plc:acme"
	signedIn = `{"did":"did:plc:acme","handle":"acme.test","accessJwt":"access","refreshJwt":"refresh"}`
)

var hello = platforms.Job{
	Account: platforms.Account{ID: did, Username: "acme.test", Token: platforms.Token{Access: "acme.test:aaaa-bbbb"}},
	Content: platforms.Content{Category: v1alpha1.CategoryText, Text: "hello"},
	Key:     platforms.Key{CreatedAt: time.Date(2026, 11, 29, 9, 30, 0, 0, time.UTC), Sum: [16]byte{1, 2, 3}},
}

// start starts a recorder that signs accounts in and responds to all other calls with the given responses in order.
func start(t *testing.T, answers ...http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	next := recorder.Sequence(answers)
	server := recorder.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".createSession") {
			recorder.Respond(http.StatusOK, signedIn)(w, r)
			return
		}
		next(w, r)
	})
	return New(Config{Config: platforms.Config{APIURL: server.URL, Clock: clocktesting.NewFakeClock(recorder.Noon)}}, transport.New(transport.Options{})), server
}

func created(key string) http.HandlerFunc {
	return recorder.Respond(http.StatusOK, `{"uri":"at://`+did+`/app.bsky.feed.post/`+key+`","cid":"bafy1"}`, "RateLimit-Limit", "5000", "RateLimit-Remaining", "4998", "RateLimit-Reset", "1795610000", "RateLimit-Policy", "5000;w=3600")
}

func refuse(status int, name string) http.HandlerFunc {
	return recorder.Respond(status, `{"error":"`+name+`","message":"no"}`)
}

func TestRecordKey(t *testing.T) {
	t.Parallel()
	key := recordKey(hello.Key)
	if !isKey(key) || key != recordKey(hello.Key) || key[0] >= 'k' {
		t.Errorf("%q is not a TID", key)
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*platforms.Key)
		after  bool
	}{
		"later":   {"later keys sort after earlier ones", func(k *platforms.Key) { k.CreatedAt = k.CreatedAt.Add(2 * time.Hour) }, true},
		"earlier": {"earlier keys sort before later ones", func(k *platforms.Key) { k.CreatedAt = k.CreatedAt.Add(-2 * time.Hour) }, false},
	} {
		other := hello.Key
		tc.change(&other)
		if (recordKey(other) > key) != tc.after {
			t.Errorf("%s: %s: %s and %s", name, tc.reason, recordKey(other), key)
		}
	}
	other := hello.Key
	other.Sum[15] = 1
	if recordKey(other) == key {
		t.Error("the last bits of the key count as well")
	}
	if !isKey(recordKey(platforms.Key{})) {
		t.Error("the zero time gives no key")
	}
}

func TestPublishResponses(t *testing.T) {
	t.Parallel()
	key := recordKey(hello.Key)
	for name, tc := range map[string]struct {
		reason  string
		answers []http.HandlerFunc
		outcome platforms.Outcome
		class   platforms.Class
	}{
		"created":                   {"the response has the key", []http.HandlerFunc{created(key)}, platforms.Posted, ""},
		"the key of another record": {"the response does not confirm this post", []http.HandlerFunc{created("3222222222222")}, platforms.Unknown, platforms.ClassUnknown},
		"no JSON body":              {"a proxy may have sent the response", []http.HandlerFunc{recorder.Respond(http.StatusOK, "ok")}, platforms.Unknown, platforms.ClassUnknown},
		"expired":                   {"the session expired before the record was created, and a new session follows", []http.HandlerFunc{refuse(400, "ExpiredToken"), recorder.Respond(200, signedIn), created(key)}, platforms.Posted, ""},
		"expired refresh token":     {"the refresh token has expired as well", []http.HandlerFunc{refuse(400, "ExpiredToken"), refuse(400, "ExpiredToken"), created(key)}, platforms.Posted, ""},
		"already created":           {"an earlier call may have created the record", []http.HandlerFunc{refuse(400, "InvalidSwap")}, platforms.Unknown, platforms.ClassDuplicate},
		"hung up":                   {"the record may have been created", []http.HandlerFunc{recorder.HangUp}, platforms.Unknown, platforms.ClassUnknown},
		"error 500":                 {"the record may have been created", []http.HandlerFunc{refuse(500, "InternalServerError")}, platforms.Unknown, platforms.ClassUnknown},
		"bare 400":                  {"a proxy in front of the server may have sent the response", []http.HandlerFunc{recorder.Respond(400, "")}, platforms.Unknown, platforms.ClassUnknown},
		"bare 429":                  {"a proxy in front of the server may have sent the response", []http.HandlerFunc{recorder.Respond(429, "")}, platforms.Unknown, platforms.ClassUnknown},
		"unlisted":                  {"an unlisted error does not show whether the record was created", []http.HandlerFunc{refuse(400, "NewError")}, platforms.Unknown, platforms.ClassUnknown},
		"invalid":                   {"the server rejects the record", []http.HandlerFunc{refuse(400, "InvalidRequest")}, platforms.Refused, platforms.ClassPermanent},
		"blob gone":                 {"the blob is uploaded again", []http.HandlerFunc{refuse(400, "BlobNotFound")}, platforms.Refused, platforms.ClassTransient},
		"taken down":                {"the owner has to act", []http.HandlerFunc{refuse(401, "AccountTakedown")}, platforms.Refused, platforms.ClassRestricted},
		"revoked":                   {"the account must be reconnected", []http.HandlerFunc{refuse(401, "AuthenticationRequired")}, platforms.Refused, platforms.ClassReconnect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, server := start(t, tc.answers...)
			got := p.Publish(t.Context(), hello)
			class := platforms.Class("")
			if got.Err != nil {
				class = got.Err.Class
			}
			if got.Outcome != tc.outcome || class != tc.class {
				t.Errorf("%s: %s, %+v", tc.reason, got.Outcome, got.Err)
			}
			if tc.outcome == platforms.Posted && (got.ExternalID != key || got.ExternalURL != "https://bsky.app/profile/did:plc:acme/post/"+key || len(got.RateLimits) != 1 || got.RateLimits[0].Remaining != 2499) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			for _, r := range server.Requests() {
				if strings.HasSuffix(r.Path, ".putRecord") && !strings.Contains(r.Body, `"rkey":"`+key+`"`) {
					t.Errorf("%s: the key is missing in %s", tc.reason, r.Body)
				}
			}
		})
	}
}

// TestRequest tests that the call requires that the record does not exist, and that the session's token is sent instead
// of the password.
func TestRequest(t *testing.T) {
	t.Parallel()
	p, server := start(t, created(recordKey(hello.Key)))
	job := hello
	job.Content.Language = "pt-BR"
	for range 2 {
		p.Publish(t.Context(), job)
	}
	if want := []string{"POST /xrpc/com.atproto.server.createSession", "POST /xrpc/com.atproto.repo.putRecord", "POST /xrpc/com.atproto.repo.putRecord"}; !slices.Equal(server.Paths(), want) {
		t.Errorf("made the calls %v, want %v", server.Paths(), want)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(server.Requests()[1].Body), &body); err != nil {
		t.Fatal(err)
	}
	if swap, there := body["swapRecord"]; !there || swap != nil {
		t.Errorf("the record may replace another one: %v", body)
	}
	if record, _ := body["record"].(map[string]any); fmt.Sprint(record["langs"]) != "[pt-BR]" {
		t.Errorf("the record has no language: %v", record)
	}
	if token := server.Requests()[1].Token; token != "access" {
		t.Errorf("the token is %q", token)
	}
}

func TestLookupResponses(t *testing.T) {
	t.Parallel()
	key := recordKey(hello.Key)
	there := `{"uri":"at://` + did + `/app.bsky.feed.post/` + key + `","cid":"bafy1","value":{"text":"hello","createdAt":"2026-11-29T09:31:00.000Z"}}`
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		want   platforms.LookupResult
		class  platforms.Class
	}{
		"there": {"the key identifies the record, whatever its text", recorder.Respond(200, there), platforms.LookupResult{
			Matches: 1, Certain: true, ExternalID: key, ExternalURL: "https://bsky.app/profile/did:plc:acme/post/" + key, PostedAt: time.Date(2026, 11, 29, 9, 31, 0, 0, time.UTC),
		}, ""},
		"absent":                    {"the server itself reports it as missing", refuse(400, "RecordNotFound"), platforms.LookupResult{Proof: true}, ""},
		"bare 400":                  {"a proxy's response is not proof", recorder.Respond(400, ""), platforms.LookupResult{}, platforms.ClassUnknown},
		"bare 404":                  {"a proxy's response is not proof", recorder.Respond(404, ""), platforms.LookupResult{}, platforms.ClassUnknown},
		"the URI of another record": {"the response describes another record", recorder.Respond(200, strings.ReplaceAll(there, key, "3222222222222")), platforms.LookupResult{}, platforms.ClassUnknown},
		"error 500":                 {"the lookup is repeated", refuse(500, "InternalServerError"), platforms.LookupResult{}, platforms.ClassTransient},
		"hung up":                   {"the lookup is repeated", recorder.HangUp, platforms.LookupResult{}, platforms.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := start(t, tc.answer)
			got, err := p.Lookup(t.Context(), hello)
			if got != tc.want || recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestRateLimited tests that the end of a rate limit is read from the headers if it is plausible.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	soon := recorder.Noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		reason, reset string
		want          time.Time
	}{
		"an hour": {"the server states the end of the limit", "1795611600", time.Unix(1795611600, 0).UTC()},
		"a year":  {"no limit lasts for a year", "1827147600", time.Time{}},
		"no date": {"Herald pauses for its own time", "soon", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := start(t, recorder.Respond(429, `{"error":"RateLimitExceeded"}`, "RateLimit-Reset", tc.reset))
			p.config.Clock = clocktesting.NewFakeClock(time.Unix(1795608000, 0))
			if got := p.Publish(t.Context(), hello); got.Outcome != platforms.Refused || got.Err.Class != platforms.ClassRateLimited || !got.Err.RetryAt.Equal(tc.want) {
				t.Errorf("%s: %+v, want until %s (%s)", tc.reason, got.Err, tc.want, soon)
			}
		})
	}
}

// TestRateLimits tests that only limits on posts are reported as such.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, left, most, policy string
		want                       []platforms.RateLimit
	}{
		"hour":      {"each post costs two points", "4998", "5000", "5000;w=3600", []platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 2500, Remaining: 2499}}},
		"day":       {"it may have the least left", "9", "35000", "35000;w=86400", []platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 17500, Remaining: 4}}},
		"calls":     {"other accounts use it as well", "2998", "3000", "3000;w=300", nil},
		"no window": {"nothing shows what it limits", "2998", "3000", "", nil},
		"no number": {"it says nothing", "many", "5000", "5000;w=3600", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			header.Set("RateLimit-Remaining", tc.left)
			header.Set("RateLimit-Limit", tc.most)
			header.Set("RateLimit-Policy", tc.policy)
			if got := rateLimits(header, recorder.Noon); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

func TestParsePost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, entered, want string
	}{
		"key":         {"the address contains the key", "3mabcdefghijk", "3mabcdefghijk"},
		"address":     {"users copy the address from the app", "https://bsky.app/profile/acme.test/post/3mabcdefghijk", "3mabcdefghijk"},
		"elsewhere":   {"the address belongs to another platform", "https://x.com/acme/post/3mabcdefghijk", ""},
		"profile":     {"a profile is not a post", "https://bsky.app/profile/acme.test", ""},
		"other words": {"a word is not a key", "hello", ""},
	} {
		if got, ok := (&Platform{webURL: DefaultWebURL}).ParsePost(hello.Account, tc.entered); got.ID != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %s: got %+v", name, tc.reason, got)
		}
	}
}

// TestBlobs tests the parsing of a checkpoint's entries. They are read from a Post's status, which tools may have
// copied or changed.
func TestBlobs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, id string
		ok         bool
	}{
		"image":     {"a stored checkpoint names a blob", "bafkrei1;10;image/jpeg", true},
		"no size":   {"the record needs the size", "bafkrei1;;image/jpeg", false},
		"negative":  {"a size is not negative", "bafkrei1;-1;image/jpeg", false},
		"no type":   {"the record needs the type", "bafkrei1;10;", false},
		"odd id":    {"the id would become part of the record", `baf"1;10;image/jpeg`, false},
		"container": {"another platform's checkpoint", "178414", false},
	} {
		got, ok := parseBlob(tc.id)
		if ok != tc.ok || ok && got.id() != tc.id {
			t.Errorf("%s: %s: %+v, %t", name, tc.reason, got, ok)
		}
	}
}
