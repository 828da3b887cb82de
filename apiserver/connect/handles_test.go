// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
)

// byHandle is Bluesky with one account, acme.test, whose server is https://pds.example.
type byHandle struct {
	*bluesky.Platform

	// keyless simulates an installation without a key.
	keyless bool
}

func (b byHandle) ClientDocument(site platforms.Site) ([]byte, error) {
	if b.keyless {
		return nil, errors.New("no key")
	}
	return []byte(site.RedirectURI), nil
}

func (byHandle) Begin(_ context.Context, handle string, consent platforms.Consent) (address, begun string, err error) {
	if handle != "acme.test" {
		return "", "", platforms.Errorf(platforms.ClassPermanent, "there is no account with this handle")
	}
	return "https://pds.example/consent?" + url.Values{"state": {consent.State}, "redirect": {consent.RedirectURI}}.Encode(), "hidden", nil
}

func (byHandle) Finish(_ context.Context, begun string, code platforms.Code, issuer string) (platforms.Choice, error) {
	if begun != "hidden" || issuer != "https://pds.example" || code.Value != "code" || code.Verifier == "" {
		return platforms.Choice{}, platforms.Errorf(platforms.ClassReconnect, "the response came from another server")
	}
	return platforms.Choice{
		Identity: platforms.Identity{AccountID: did, Username: "acme.test"},
		Token:    platforms.Token{Access: "dpop|access", Refresh: "dpop|refresh", ExpiresAt: time.Now().Add(time.Hour)},
	}, nil
}

func handleDesk(ctx SpecContext, keyless bool) *desk {
	GinkgoHelper()
	platform := bluesky.New(bluesky.Config{}, transport.New(transport.Options{}))
	return newDesk(ctx, func(c *connect.Config) {
		c.Platforms = platforms.Registry{v1alpha1.PlatformBluesky: byHandle{platform, keyless}}
	})
}

// byHandle starts a flow for a handle.
func (d *desk) byHandle(ctx SpecContext, handle, reconnect string) (*trip, error) {
	GinkgoHelper()
	who := visitor("oidc:ann")
	started, err := d.Start(ctx, who, d.namespace, connect.Wanted{Platform: v1alpha1.PlatformBluesky, Handle: handle, Reconnect: reconnect})
	if err != nil {
		return nil, err
	}
	return &trip{desk: d, who: who, platform: v1alpha1.PlatformBluesky, started: started, cookies: map[string]string{started.Cookie.Name: started.Cookie.Value}}, nil
}

var _ = Describe("Connecting an account by its handle", func() {
	const issuer = "https://pds.example"
	// back sets the parameters of the redirect to the site.
	back := func(t *trip, from string) *trip {
		GinkgoHelper()
		page, err := url.Parse(t.started.Address)
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Host).To(Equal("pds.example"))
		Expect(page.Query().Get("redirect")).To(Equal("https://herald.example.com/connect/bluesky/callback"))
		t.back = url.Values{"state": {page.Query().Get("state")}, "code": {"code"}, "iss": {from}}
		return t
	}

	It("stores the token, and connects the account again", func(ctx SpecContext) {
		d := handleDesk(ctx, false)
		Expect(d.NeedsHandle(v1alpha1.PlatformBluesky)).To(BeTrue())
		Expect(d.NeedsHandle(v1alpha1.PlatformX)).To(BeFalse())
		Expect(d.Available()).To(Equal([]v1alpha1.Platform{v1alpha1.PlatformBluesky}), "once, although app passwords are possible too")
		document, err := d.ClientDocument(v1alpha1.PlatformBluesky)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(document)).To(Equal("https://herald.example.com/connect/bluesky/callback"))

		t, err := d.byHandle(ctx, "acme.test", "")
		Expect(err).NotTo(HaveOccurred())
		out, err := back(t, issuer).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		made, secret := d.stored(ctx, out.Connection.Name)
		Expect(made.Spec.AccountID).To(Equal(did))
		Expect(string(secret.Data[v1alpha1.CredentialsRefreshToken])).To(Equal("dpop|refresh"))
		Expect(secret.Data).To(HaveKey(v1alpha1.CredentialsExpiresAt), "the manager renews the token before")
		Expect(d.log.String()).NotTo(Or(ContainSubstring("dpop|"), ContainSubstring("hidden")))

		t, err = d.byHandle(ctx, "acme.test", made.Name)
		Expect(err).NotTo(HaveOccurred())
		out, err = back(t, issuer).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Renewed).To(BeTrue())
	})

	It("rejects a code from another server", func(ctx SpecContext) {
		t, err := handleDesk(ctx, false).byHandle(ctx, "acme.test", "")
		Expect(err).NotTo(HaveOccurred())
		_, err = back(t, "https://evil.example").arrive(ctx)
		refuses(err, bridge.CodeValidation, "another server")
		found, secrets := t.desk.all(ctx)
		Expect(found).To(BeEmpty())
		Expect(secrets).To(BeEmpty())
	})

	It("explains a handle that does not exist", func(ctx SpecContext) {
		_, err := handleDesk(ctx, false).byHandle(ctx, "nobody.test", "")
		refuses(err, bridge.CodeValidation, "no account with this handle")
	})

	It("is not possible without a key, and app passwords still are", func(ctx SpecContext) {
		d := handleDesk(ctx, true)
		Expect(d.NeedsHandle(v1alpha1.PlatformBluesky)).To(BeFalse())
		Expect(d.Available()).To(Equal([]v1alpha1.Platform{v1alpha1.PlatformBluesky}))
		_, err := d.byHandle(ctx, "acme.test", "")
		refuses(err, bridge.CodeNotFound, "cannot be connected here")
	})

	DescribeTable("explains to the user of a disconnected account what becomes of the access", func(ctx SpecContext, keyless bool, expires time.Duration, want string) {
		d := handleDesk(ctx, keyless)
		made := &v1alpha1.Connection{}
		made.Namespace, made.Name = d.namespace, "sky"
		made.Spec.Platform, made.Spec.AccountID, made.Spec.CredentialsSecretRef.Name = v1alpha1.PlatformBluesky, did, "sky"
		Expect(env.Client.Create(ctx, made)).To(Succeed())
		if expires > 0 {
			made.Status.TokenExpiresAt = v1alpha1.NewTimePtr(time.Now().Add(expires))
			Expect(env.Client.Status().Update(ctx, made)).To(Succeed())
		}
		gone, err := d.Disconnect(ctx, visitor("ann"), d.namespace, made.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(gone.Message).To(ContainSubstring(want))
	},
		Entry("the manager revokes a token", false, time.Hour, "In a few minutes, Herald asks the account's server once to revoke its access"),
		Entry("only its owner can revoke an app password", false, time.Duration(0), "The app password remains valid"),
		Entry("also without a key", true, time.Duration(0), "The app password remains valid"),
		Entry("a token whose key was removed from the configuration", true, time.Hour, "remove it from the connected apps"),
	)
})
