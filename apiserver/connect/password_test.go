// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
)

const (
	appPassword = "abcd-efgh-ijkl-mnop"
	did         = "did:plc:Acme"
)

// blueskyServer returns a server that accepts the app passwords of one account, identified by its handle or DID.
func blueskyServer(passwords ...string) *httptest.Server {
	GinkgoHelper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const session = `{"did":"` + did + `","handle":"acme.test","accessJwt":"access","refreshJwt":"refresh"}`
		switch {
		case strings.HasSuffix(r.URL.Path, ".createSession"):
			var typed struct {
				Identifier string `json:"identifier"`
				Password   string `json:"password"`
			}
			_ = json.NewDecoder(r.Body).Decode(&typed)
			for _, password := range passwords {
				if typed.Password == password && (typed.Identifier == "acme.test" || typed.Identifier == did) {
					_, _ = io.WriteString(w, session)
					return
				}
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"AuthenticationRequired","message":"Invalid identifier or password"}`)
		case strings.HasSuffix(r.URL.Path, ".getSession"):
			_, _ = io.WriteString(w, session)
		default:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"RecordNotFound"}`)
		}
	}))
	DeferCleanup(server.Close)
	return server
}

func passwordDesk(ctx SpecContext, server *httptest.Server) *desk {
	GinkgoHelper()
	return newDesk(ctx, func(c *connect.Config) {
		c.Platforms = platforms.Registry{
			v1alpha1.PlatformBluesky: bluesky.New(bluesky.Config{Config: platforms.Config{APIURL: server.URL}}, transport.New(transport.Options{})),
		}
	})
}

func typed(name, password string) *connect.Credentials {
	return &connect.Credentials{Platform: v1alpha1.PlatformBluesky, Name: name, Password: password}
}

var _ = Describe("Connecting an account by an app password", func() {
	It("stores the password in a Secret, under the id that never changes", func(ctx SpecContext) {
		d := passwordDesk(ctx, blueskyServer(appPassword))
		Expect(d.Available()).To(Equal([]v1alpha1.Platform{v1alpha1.PlatformBluesky}))
		page, ok := d.AppPasswords(v1alpha1.PlatformBluesky)
		Expect(ok).To(BeTrue())
		Expect(page).To(Equal("https://bsky.app/settings/app-passwords"))

		out, err := d.ConnectPassword(ctx, visitor("oidc:ann"), d.namespace, typed(" @acme.test", appPassword+" "))
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Renewed).To(BeFalse())
		made, secret := d.stored(ctx, connect.ConnectionName(d.namespace, v1alpha1.PlatformBluesky, did))
		Expect(made.Spec.AccountID).To(Equal(did))
		Expect(made.Annotations).To(HaveKeyWithValue(v1alpha1.AuthorAnnotation, "oidc:ann"))
		Expect(string(secret.Data[v1alpha1.CredentialsAccessToken])).To(Equal(did + ":" + appPassword))
		Expect(secret.Data).To(And(HaveLen(2), HaveKey(v1alpha1.CredentialsGrantedAt)))
		Expect(secret.Annotations).NotTo(HaveKey(credentials.AppMarkAnnotation), "the platform has no app")
		Expect(d.log.String()).NotTo(ContainSubstring(appPassword))
	})

	It("gives an account a new password", func(ctx SpecContext) {
		d := passwordDesk(ctx, blueskyServer(appPassword, "2222-3333-4444-5555"))
		first, err := d.ConnectPassword(ctx, visitor("ann"), d.namespace, typed("acme.test", appPassword))
		Expect(err).NotTo(HaveOccurred())
		again := typed("acme.test", "2222-3333-4444-5555")
		again.Reconnect = first.Connection.Name
		out, err := d.ConnectPassword(ctx, visitor("ann"), d.namespace, again)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Renewed).To(BeTrue())
		_, secret := d.stored(ctx, first.Connection.Name)
		Expect(string(secret.Data[v1alpha1.CredentialsAccessToken])).To(HaveSuffix(":2222-3333-4444-5555"))
	})

	DescribeTable("writes nothing after a mistake", func(ctx SpecContext, of *connect.Credentials, code bridge.Code, word string) {
		d := passwordDesk(ctx, blueskyServer(appPassword))
		_, err := d.ConnectPassword(ctx, visitor("ann"), d.namespace, of)
		refuses(err, code, word)
		Expect(d.log.String()).NotTo(ContainSubstring(of.Password))
		var all v1alpha1.ConnectionList
		Expect(env.Client.List(ctx, &all, inNamespace(d.namespace))).To(Succeed())
		Expect(all.Items).To(BeEmpty())
	},
		Entry("the server does not accept the password", typed("acme.test", "zzzz-zzzz-zzzz-zzzz"), bridge.CodeValidation, "wrong or was revoked"),
		Entry("the account's own password opens everything, and is not sent", typed("acme.test", "my own password"), bridge.CodeValidation, "not an app password"),
		Entry("a handle without a domain does not exist", typed("acme", appPassword), bridge.CodeValidation, "handle is not complete"),
		Entry("a platform with consent pages has none", &connect.Credentials{Platform: v1alpha1.PlatformX, Name: "a.b", Password: appPassword}, bridge.CodeNotFound, "accounts of X cannot be connected here"))
})
