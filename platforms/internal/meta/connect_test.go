// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// TestInvalidCodes tests how Meta's hosts respond to a rejected code, in the format that Threads and Instagram use and
// in Graph's.
func TestInvalidCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		status int
		body   string
		class  platforms.Class
		words  string
	}{
		"used":           {"a code works once", 400, `{"error_type":"OAuthException","code":400,"error_message":"Matching code was not found or was already used"}`, platforms.ClassReconnect, "no longer accepts"},
		"malformed":      {"the code was changed in transit", 400, `{"error_type":"OAuthException","code":400,"error_message":"Invalid verification code format."}`, platforms.ClassReconnect, "no longer accepts"},
		"used, by Graph": {"Facebook uses another message", 400, `{"error":{"message":"This authorization code has been used.","type":"OAuthException","code":100,"error_subcode":36009}}`, platforms.ClassReconnect, "no longer accepts"},
		"address":        {"the administrator has to enter the address", 400, `{"error_type":"OAuthException","code":400,"error_message":"Invalid redirect_uri"}`, platforms.ClassPermanent, "redirect URIs"},
		"address, by Graph": {
			"Facebook names the code and the address", 400,
			`{"error":{"message":"Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request","type":"OAuthException","code":100,"error_subcode":36008}}`,
			platforms.ClassPermanent, "redirect URIs",
		},
		"app":            {"the administrator has to correct it", 400, `{"error_type":"OAuthException","code":400,"error_message":"Error validating client secret."}`, platforms.ClassTransient, "client id or client secret"},
		"trouble":        {"an outage passes", 500, `{"error":{"message":"An unknown error has occurred.","type":"OAuthException","code":1}}`, platforms.ClassTransient, "is having problems"},
		"limit":          {"a limit is not an error of the code", 400, `{"error":{"message":"(#4) Application request limit reached","type":"OAuthException","code":4}}`, platforms.ClassRateLimited, "limit"},
		"no answer":      {"a proxy responded", 400, `<html>`, platforms.ClassUnknown, "does not understand"},
		"empty response": {"a success without a token", 200, `{"data":[]}`, platforms.ClassUnknown, "did not return an access token"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			t.Cleanup(server.Close)
			graph := meta.Graph{
				Client: client.Client{Platform: "acme", Name: "Acme", BaseURL: server.URL, Transport: transport.New(transport.Options{})}, Version: "v25.0",
				Clock: clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)),
			}
			login := meta.Login{Tokens: &graph.Client, ID: "me", Secret: func() string { return "the-secret" }}
			code := platforms.Code{Value: "the-code", RedirectURI: "https://back"}
			_, short := graph.ExchangeCode(t.Context(), &login, code)
			_, long := graph.ExchangeCodeLongLived(t.Context(), &login, code)
			for way, err := range map[string]error{"Redeem": short, "RedeemLong": long} {
				failure, ok := errors.AsType[*platforms.Error](err)
				if !ok || failure.Class != tc.class || !strings.Contains(failure.Error(), tc.words) {
					t.Errorf("%s, %s: got %v", tc.reason, way, err)
				}
				for ; err != nil; err = errors.Unwrap(err) {
					if strings.Contains(err.Error(), "the-code") || strings.Contains(err.Error(), "the-secret") {
						t.Errorf("%s contains a secret: %v", way, err)
					}
				}
			}
		})
	}
}
