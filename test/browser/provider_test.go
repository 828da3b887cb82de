// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/issuertest"
)

// The specs use the tests' OpenID provider like a standard client.
var _ = Describe("The tests' OpenID provider", func() {
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // from RFC 7636, appendix B

	var (
		page    *chrome.Page
		p       *issuertest.Issuer
		answers chan url.Values
		back    string
	)

	BeforeEach(func() {
		answers = make(chan url.Values, 1)
		client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" {
				answers <- r.URL.Query()
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			write(w, `<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,"><h1>Back</h1>`)
		}))
		DeferCleanup(client.Close)
		back = client.URL + "/callback"
		p = &issuertest.Issuer{RedirectURI: back, People: map[string]map[string]any{"Ada": {"email": "ada@example.com", "groups": []string{"editors"}}}}
		p.Start()
		DeferCleanup(p.Close)
		page = newPage(chrome.Options{})
	})

	authorize := func() string {
		sum := sha256.Sum256([]byte(verifier))
		return p.URL + "/authorize?" + url.Values{
			"client_id": {"herald"}, "redirect_uri": {back}, "response_type": {"code"}, "state": {"s"}, "nonce": {"n"}, "scope": {"openid"},
			"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		}.Encode()
	}
	exchange := func(code, verifier, secret string) (int, map[string]any) {
		GinkgoHelper()
		response, err := http.PostForm(p.URL+"/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back}, "code_verifier": {verifier}, "client_id": {"herald"}, "client_secret": {secret},
		})
		must(err)
		defer response.Body.Close()
		var body map[string]any
		must(json.NewDecoder(response.Body).Decode(&body))
		return response.StatusCode, body
	}
	code := func() string {
		GinkgoHelper()
		must(page.Open(authorize()))
		must(page.Get("link", "Ada").Follow())
		var answer url.Values
		Eventually(answers).Should(Receive(&answer))
		Expect(answer.Get("state")).To(Equal("s"))
		Expect(answer.Get("iss")).To(Equal(p.URL))
		return answer.Get("code")
	}

	It("signs a user in, with a token signed by its key", func() {
		status, body := exchange(code(), verifier, issuertest.ClientSecret)
		Expect(status).To(Equal(http.StatusOK))
		parts := strings.Split(body["id_token"].(string), ".")
		Expect(parts).To(HaveLen(3))
		var claims map[string]any
		must(json.Unmarshal(decoded(parts[1]), &claims))
		Expect(claims).To(And(HaveKeyWithValue("sub", "Ada"), HaveKeyWithValue("nonce", "n"), HaveKeyWithValue("aud", "herald"),
			HaveKeyWithValue("iss", p.URL), HaveKeyWithValue("email", "ada@example.com")))

		response, err := http.Get(p.URL + "/keys")
		must(err)
		defer response.Body.Close()
		var set struct {
			Keys []struct {
				N string `json:"n"`
				E string `json:"e"`
			} `json:"keys"`
		}
		must(json.NewDecoder(response.Body).Decode(&set))
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(decoded(set.Keys[0].N)), E: int(new(big.Int).SetBytes(decoded(set.Keys[0].E)).Int64())}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		Expect(rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decoded(parts[2]))).To(Succeed())
	})

	It("accepts a code once, from its client, with its verifier", func() {
		first := code()
		status, _ := exchange(first, "another", issuertest.ClientSecret)
		Expect(status).To(Equal(http.StatusBadRequest))
		status, _ = exchange(first, verifier, issuertest.ClientSecret)
		Expect(status).To(Equal(http.StatusBadRequest), "a tried code is used up")
		status, _ = exchange(code(), verifier, "wrong")
		Expect(status).To(Equal(http.StatusUnauthorized))
	})

	DescribeTable("accepts only standard-compliant requests",
		func(name, value string) {
			asked, err := url.Parse(authorize())
			must(err)
			query := asked.Query()
			query.Set(name, value)
			asked.RawQuery = query.Encode()
			response, err := http.Get(asked.String())
			must(err)
			must(response.Body.Close())
			Expect(response.StatusCode).To(Equal(http.StatusBadRequest))
		},
		Entry("another client", "client_id", "another"), Entry("another redirect URI", "redirect_uri", "http://127.0.0.1/callback"),
		Entry("another response type", "response_type", "token"), Entry("no state", "state", ""), Entry("no nonce", "nonce", ""),
		Entry("no challenge", "code_challenge", ""), Entry("a challenge in the clear", "code_challenge_method", "plain"),
	)

	It("supports denying consent", func() {
		must(page.Open(authorize()))
		must(page.Get("link", "Nobody").Follow())
		var answer url.Values
		Eventually(answers).Should(Receive(&answer))
		Expect(answer.Get("error")).To(Equal("access_denied"))
	})
})

func decoded(text string) []byte {
	GinkgoHelper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	must(err)
	return data
}
