// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// refusal is a TikTok error response.
type refusal struct {
	status        int
	code, message string
}

// invalid returns the refusal for an invalid request.
func invalid(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "invalid_params", fmt.Sprintf(format, args...)}
}

func forbidden(code, message string) *refusal { return &refusal{http.StatusForbidden, code, message} }

// broken logs an internal sandbox failure and returns the refusal to respond with.
func (p *Platform) broken(doing string, err error) *refusal {
	p.Logger.Error("the sandbox failed", "platform", Name, "doing", doing, "error", err)
	return &refusal{http.StatusInternalServerError, "internal_error", "Something is wrong. Please try again later."}
}

// answer responds with the result of an operation.
func (p *Platform) answer(w http.ResponseWriter, data any, bad *refusal) {
	if bad != nil {
		p.fail(w, bad.status, bad.code, bad.message)
		return
	}
	p.succeed(w, data)
}

// readJSON decodes a request body, which must be a JSON object. parameters are the permitted query parameters. A
// lenient sandbox ignores all other fields and parameters, as TikTok does: OpenPost sends the photo field post_mode
// with videos too.
func (p *Platform) readJSON(r *faults.Request, into any, parameters ...string) *refusal {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return invalid("The Content-Type must be application/json; charset=UTF-8.")
	}
	query := r.URL.Query()
	for name := range query {
		if !p.Lenient && !slices.Contains(parameters, name) || len(query[name]) > 1 {
			return invalid("The parameter %s is not expected, or not more than once.", name)
		}
	}
	decode := simulator.Decode
	if p.Lenient {
		decode = json.Unmarshal
	}
	if err := decode(r.Content, into); err != nil {
		return invalid("The body is not as expected: %v.", err)
	}
	return nil
}

// checkLength checks the length of text in UTF-16 units, as TikTok does.
func checkLength(field, text string, most int) *refusal {
	if n := len(utf16.Encode([]rune(text))); n > most {
		return invalid("%s has %d characters, the most are %d.", field, n, most)
	}
	return nil
}

// checkURL returns a refusal if TikTok would not fetch from the URL. It must be HTTPS, except on this machine and the
// hosts in PlainHosts.
func (p *Platform) checkURL(field, address string) *refusal {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && u.User == nil && u.Fragment == "" {
		host := net.ParseIP(u.Hostname())
		if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || host != nil && host.IsLoopback() || slices.Contains(p.PlainHosts, u.Hostname())) {
			return nil
		}
	}
	return invalid("%s is not the HTTPS address of a file.", field)
}

// privacyLevels returns the privacy levels that the account can choose from.
func privacyLevels(account state.Account) []string {
	if account.Settings.Private {
		return []string{"FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", selfOnly}
	}
	return []string{everyone, "MUTUAL_FOLLOW_FRIENDS", selfOnly}
}

const (
	everyone = "PUBLIC_TO_EVERYONE"
	selfOnly = "SELF_ONLY"
)

// checkPrivacy returns a refusal if the account is not allowed to post with the privacy level.
func checkPrivacy(account state.Account, level string, branded bool) *refusal {
	known := []string{everyone, "MUTUAL_FOLLOW_FRIENDS", "FOLLOWER_OF_CREATOR", selfOnly}
	switch {
	case !slices.Contains(known, level):
		return invalid("post_info.privacy_level is required, and one of %s.", strings.Join(known, ", "))
	case !slices.Contains(privacyLevels(account), level):
		return forbidden("privacy_level_option_mismatch", "The privacy level is not among the options of the creator: "+level+".")
	case branded && level == selfOnly:
		return invalid("post_info.brand_content_toggle is not allowed with privacy_level SELF_ONLY.")
	default:
		return nil
	}
}

// checkRoom returns a refusal if the account's quota is used up. Drafts do not count.
func (p *Platform) checkRoom(account state.Account, inbox bool) *refusal {
	if quota := account.Settings.Quota; !inbox && quota != nil && p.Store.QuotaUsed(account.Key) >= *quota {
		return forbidden(tooManyPosts, "The daily post cap from the API is reached for the current user.")
	}
	return nil
}

const tooManyPosts = "spam_risk_too_many_posts"
