// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apitoken_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/apitoken"
)

// known was made by New; it must stay valid in every later release.
const (
	known     = "hrld_08kSIeCzvgH7_HiOdtG6ZjNN1jpcC1bKJ1nk6gI36rGT3g8VhtwRAA7F1txN0g"
	knownID   = "08kSIeCzvgH7"
	knownHash = "fbbaf33c447f9733028d869e2e4c8147c99b255555e81322e0f34f2586166967"
)

func TestNew(t *testing.T) {
	t.Parallel()
	token := apitoken.New("team-acme", "ci")
	if token == apitoken.New("team-acme", "ci") {
		t.Errorf("the same token twice: %s", token)
	}
	if !regexp.MustCompile(`^hrld_0[0-9A-Za-z]{11}_[0-9A-Za-z]{49}$`).MatchString(token) {
		t.Errorf("%q has not the form that scanners look for", token)
	}
	if id, ok := apitoken.Parse(token); !ok || id != knownID {
		t.Errorf("Parse(%q) = %q, %v; want %q", token, id, ok, knownID)
	}
	if want := token[:len("hrld_0aaaaaaaaaaa_")+4]; apitoken.Shown(token) != want {
		t.Errorf("%q of the token is shown, want %q", apitoken.Shown(token), want)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	swapped := []byte(known)
	swapped[25], swapped[26] = swapped[26], swapped[25]
	for name, tc := range map[string]struct {
		reason string
		token  string
		want   bool
	}{
		"Known":       {"tokens outlive releases", known, true},
		"Mistyped":    {"one character is another", strings.Replace(known, "hrld_0", "hrld_1", 1), false},
		"Swapped":     {"two characters changed places", string(swapped), false},
		"CutOff":      {"the end was not copied", known[:len(known)-1], false},
		"TooLong":     {"one more character was copied", known + "0", false},
		"Lower":       {"capitals count", strings.ToLower(known), false},
		"Blank":       {"a line break was copied into the token", known[:30] + "\n" + known[31:], false},
		"OtherPrefix": {"the token belongs to another product", "x" + known[1:], false},
		"Old":         {"tokens had no id before", "hrld_" + strings.Repeat("a", 52), false},
		"NoID":        {"the token does not contain an id", "hrld__" + known[len(known)-49:], false},
		"PrefixOnly":  {"the token contains only the prefix", "hrld_", false},
		"Empty":       {"the token is empty", "", false},
		"Hash":        {"a stored hash is not a token", knownHash, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, ok := apitoken.Parse(tc.token)
			if ok != tc.want || ok && id != knownID {
				t.Errorf("%s: Parse(%q) = %q, %v; want %v", tc.reason, tc.token, id, ok, tc.want)
			}
		})
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("team-acme/ci/" + known))
	if want := hex.EncodeToString(sum[:]); apitoken.Hash("team-acme", "ci", known) != want || want != knownHash {
		t.Errorf("got %s, want %s as computed by sha256sum, and %s as stored by earlier releases", apitoken.Hash("team-acme", "ci", known), want, knownHash)
	}
	for _, other := range []struct{ reason, namespace, name string }{
		{"a hash copied to another namespace is invalid", "team-other", "ci"},
		{"a hash copied to another name is invalid", "team-acme", "ci2"},
		{"the boundary between the two counts", "team-acme-c", "i"},
	} {
		if apitoken.Hash(other.namespace, other.name, known) == knownHash || apitoken.ID(other.namespace, other.name) == knownID {
			t.Errorf("%s: %s/%s", other.reason, other.namespace, other.name)
		}
	}
}

// FuzzParse checks that the parts of an accepted token are consistent, and that Shown hides most of the secret.
func FuzzParse(f *testing.F) {
	token := apitoken.New("team-acme", "ci")
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add("hrld_" + strings.Repeat("a", 300))
	f.Add("hrld__")
	f.Fuzz(func(t *testing.T, token string) {
		id, ok := apitoken.Parse(token)
		if !ok {
			return
		}
		shown := apitoken.Shown(token)
		if id == "" || !strings.HasPrefix(token, "hrld_"+id+"_") || !strings.HasPrefix(token, shown) {
			t.Errorf("%q has the id %q, and is shown as %q", token, id, shown)
		}
		if hidden := len(token) - len(shown); hidden < 43 {
			t.Errorf("%q is shown as %q: %d characters are hidden", token, shown, hidden)
		}
	})
}
