// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
)

// wholeNumber matches an integer of any size.
var wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+$`)

// plainName holds the characters of names in a header and in messages for models.
const plainName = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.[]%"`

// wantPage returns the page and limit of a query, according to the contract; false if the query must be rejected.
func wantPage(query string) (page, limit string, ok bool) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", "", false
	}
	ok = true
	number := func(name string, otherwise, least, most int64) string {
		given, present := values[name]
		if !present {
			return strconv.FormatInt(otherwise, 10)
		}
		n, isNumber := new(big.Int), len(given) == 1 && wholeNumber.MatchString(given[0])
		if !isNumber {
			ok = false
			return ""
		}
		n.SetString(given[0], 10)
		for _, bound := range []struct {
			at   int64
			past int
		}{{least, -1}, {most, 1}} {
			if end := big.NewInt(bound.at); n.Cmp(end) == bound.past {
				n = end
			}
		}
		return n.String()
	}
	among := func(name string, known ...string) {
		if given, present := values[name]; present && (len(given) > 1 || !slices.Contains(known, given[0])) {
			ok = false
		}
	}
	page, limit = number("page", 1, 1, 1<<53-1), number("limit", 20, 1, 100)
	among("status", "posted", "scheduled", "processing", "failed", "draft")
	among("platform", "youtube", "tiktok", "instagram", "threads", "x", "facebook")
	return page, limit, ok
}

// FuzzListQuery verifies that a list accepts exactly the queries that the contract describes, and rejects all others
// with an error envelope.
func FuzzListQuery(f *testing.F) {
	for _, seed := range []string{
		"", "page=2&limit=100", "page=0&limit=-3", "page=1e3", "page=9223372036854775808", "limit=abc", "limit=", "page=%2B1", "page=1&page=1",
		"status=draft&platform=x", "status=cancelled", "status=draft%00", "platform=%ff", "status=%zz", "page=1;limit=2", "a=b&a=c&=", "page=0x1&limit=1_0", "%70age=3",
		"page=99999999999999999999&limit=99999999999999999999", "page=-99999999999999999999&limit=-99999999999999999999", "limit=00000000000000000000000000000000003",
		"page=%2B99999999999999999999&status=draft", "page=9007199254740993", "limit=--99999999999999999999", "limit=9999999999999999999x", "page=%D9%A3", "page=-92270000000000000000000000000000A00", "page=+99999999999999999999",
	} {
		f.Add(seed)
	}
	handler := NewHandler(bridge.New(bridge.Config{
		Key: anyKey{}.Authenticate, Used: func(*v1alpha1.APIKey) {}, Index: postindex.New(), Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}), Limits{})
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(request.With(t.Context(), &request.Info{}), http.MethodGet, Prefix+"/posts", http.NoBody)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", "Bearer t")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var answer struct {
			Pagination struct {
				Page  json.Number `json:"page"`
				Limit json.Number `json:"limit"`
			} `json:"pagination"`
			Error struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || !utf8.Valid(w.Body.Bytes()) {
			t.Fatalf("%q returned %q: %v", query, w.Body, err)
		}
		for name := range strings.SplitSeq(w.Header().Get(IgnoredHeader), ", ") {
			if len(w.Header().Get(IgnoredHeader)) > maxIgnored || strings.Trim(name, plainName) != "" || slices.Contains([]string{"page", "limit", "status", "platform"}, name) {
				t.Errorf("%q returned %q as ignored", query, w.Header().Get(IgnoredHeader))
			}
		}
		page, limit, ok := wantPage(query)
		switch {
		case !ok && (w.Code != http.StatusBadRequest || answer.Error.Code != string(bridge.CodeValidation) || answer.Error.Message == ""):
			t.Errorf("%q must be rejected, but returned %d %s", query, w.Code, w.Body)
		case ok && (w.Code != http.StatusOK || answer.Pagination.Page.String() != page || answer.Pagination.Limit.String() != limit):
			t.Errorf("%q requests %s posts of page %s, but returned %d %s", query, limit, page, w.Code, w.Body)
		}
	})
}
