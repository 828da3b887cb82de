// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/connect"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/mastodon"
)

const sharedSecret = "herald-web"

// serverDesk returns a desk with only Mastodon, which calls the sandbox in place of every server. The Secret with the
// apps is in the desk's namespace.
func serverDesk(ctx SpecContext, edits ...func(*connect.Config)) *desk {
	GinkgoHelper()
	d := newDesk(ctx, func(c *connect.Config) {
		c.Platforms = platforms.Registry{
			v1alpha1.PlatformMastodon: mastodon.New(mastodon.Config{APIURL: site.URL + "/mastodon"}, transport.New(transport.Options{})),
		}
	})
	own, err := kube.NewSecrets(env.Config, "connect-test", d.namespace)
	Expect(err).NotTo(HaveOccurred())
	d.Servers = connect.NewServerApps(own, sharedSecret, d.clock)
	for _, edit := range edits {
		edit(&d.Config)
	}
	Expect(env.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: sharedSecret}, Data: map[string][]byte{"keys": []byte("[]")},
	})).To(Succeed())
	return d
}

// onServer starts a flow on a server, as the user types its name.
func (d *desk) onServer(ctx SpecContext, typed, server string) *trip {
	GinkgoHelper()
	who := visitor("oidc:ann")
	started, err := d.Start(ctx, who, d.namespace, connect.Wanted{Platform: v1alpha1.PlatformMastodon, Server: typed})
	Expect(err).NotTo(HaveOccurred())
	return &trip{
		desk: d, who: who, platform: v1alpha1.PlatformMastodon, server: server, started: started,
		cookies: map[string]string{started.Cookie.Name: started.Cookie.Value},
	}
}

// serverApps reads the stored apps.
func (d *desk) serverApps(ctx SpecContext) map[string]platforms.ServerApp {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(env.Client.Get(ctx, objectKey(d.namespace, sharedSecret), &secret)).To(Succeed())
	Expect(secret.Data).To(HaveKeyWithValue("keys", []byte("[]")), "the session keys are unchanged")
	apps := map[string]platforms.ServerApp{}
	Expect(json.Unmarshal(secret.Data["serverApps"], &apps)).To(Succeed())
	return apps
}

func registrations(ctx SpecContext) int {
	GinkgoHelper()
	counts, err := site.Calls(ctx, "mastodon")
	Expect(err).NotTo(HaveOccurred())
	return counts["register"]
}

var _ = Describe("Connecting an account on a server that the user chooses", func() {
	It("uses one app for each server", func(ctx SpecContext) {
		d, first, second := serverDesk(ctx), newAccount(ctx, v1alpha1.PlatformMastodon), newAccount(ctx, v1alpha1.PlatformMastodon)
		Expect(d.Available()).To(Equal([]v1alpha1.Platform{v1alpha1.PlatformMastodon}))
		Expect(d.NeedsServer(v1alpha1.PlatformMastodon)).To(BeTrue())
		Expect(d.NeedsServer(v1alpha1.PlatformX)).To(BeFalse())
		before := registrations(ctx)

		t := d.onServer(ctx, "@acme@Mastodon.Example", "mastodon.example")
		Expect(t.started.Address).To(And(HavePrefix(site.URL+"/mastodon/oauth/authorize?"), ContainSubstring("code_challenge_method=S256")))
		out, err := t.agree(ctx, first).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		app := d.serverApps(ctx)["https://mastodon.example"]
		Expect(app.RedirectURI).To(Equal("https://herald.example.com/connect/mastodon/callback/mastodon.example"))

		made, secret := d.stored(ctx, out.Connection.Name)
		Expect(made.Spec.Server).To(Equal("https://mastodon.example"))
		Expect(made.Spec.AccountID).To(Equal(first + "@mastodon.example"))
		Expect(string(secret.Data[v1alpha1.CredentialsClientID])).To(Equal(app.ClientID), "the manager revokes the token with it")
		Expect(string(secret.Data[v1alpha1.CredentialsClientSecret])).To(Equal(app.ClientSecret))
		Expect(secret.Data).To(HaveLen(5), "and the token, its scopes, and the time")
		Expect(secret.Annotations).NotTo(HaveKey(credentials.AppMarkAnnotation), "no limit applies to the app")
		Expect(d.log.String()).NotTo(Or(ContainSubstring(app.ClientSecret), ContainSubstring(string(secret.Data[v1alpha1.CredentialsAccessToken]))))

		_, err = d.onServer(ctx, "https://mastodon.example/home", "mastodon.example").agree(ctx, second).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(registrations(ctx)-before).To(Equal(1), "the app is used again")
		_, err = d.onServer(ctx, "other.example", "other.example").agree(ctx, second).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.serverApps(ctx)).To(HaveLen(2))
	})

	It("connects an account again on its own server, even if the server has removed the app", func(ctx SpecContext) {
		d, account := serverDesk(ctx), newAccount(ctx, v1alpha1.PlatformMastodon)
		out, err := d.onServer(ctx, "mastodon.example", "mastodon.example").agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		before := d.serverApps(ctx)["https://mastodon.example"]
		secrets, err := kube.NewSecrets(env.Config, "connect-test", d.namespace)
		Expect(err).NotTo(HaveOccurred())
		shared, err := secrets.Get(ctx, sharedSecret, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		shared.Data["serverApps"] = []byte(strings.Replace(string(shared.Data["serverApps"]), before.ClientID, "removed", 1))
		_, err = secrets.Update(ctx, shared, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())

		t := d.startFlow(ctx, visitor("ann"), v1alpha1.PlatformMastodon, out.Connection.Name)
		t.server = "mastodon.example"
		again, err := t.agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Renewed).To(BeTrue())
		Expect(again.Connection.Name).To(Equal(out.Connection.Name))
		app := d.serverApps(ctx)["https://mastodon.example"]
		Expect(app.ClientID).NotTo(Or(Equal(before.ClientID), Equal("removed")))
		_, secret := d.stored(ctx, out.Connection.Name)
		Expect(string(secret.Data[v1alpha1.CredentialsClientID])).To(Equal(app.ClientID))
	})

	DescribeTable("refuses a response from another server, which may have received this one's code", func(ctx SpecContext, server string) {
		d, account := serverDesk(ctx), newAccount(ctx, v1alpha1.PlatformMastodon)
		t := d.onServer(ctx, "mastodon.example", "mastodon.example").agree(ctx, account)
		t.server = server
		_, err := t.arrive(ctx)
		refuses(err, bridge.CodeValidation, "another server than mastodon.example")
		connections, _ := d.all(ctx)
		Expect(connections).To(BeEmpty())
	},
		Entry("whose address is known", "evil.example"),
		Entry("without one", ""),
	)

	It("registers another app when the site's address changes", func(ctx SpecContext) {
		d := serverDesk(ctx)
		d.onServer(ctx, "mastodon.example", "mastodon.example")
		d.SiteURL = "https://moved.example.com"
		d.onServer(ctx, "mastodon.example", "mastodon.example")
		Expect(d.serverApps(ctx)["https://mastodon.example"].RedirectURI).To(Equal("https://moved.example.com/connect/mastodon/callback/mastodon.example"))
	})

	It("stores a limited number of apps, and drops the one that was registered first", func(ctx SpecContext) {
		d := serverDesk(ctx)
		for i := range 41 {
			d.onServer(ctx, fmt.Sprintf("s%d.example", i), "")
			d.clock.Step(time.Second)
		}
		Expect(d.serverApps(ctx)).To(And(HaveLen(40), Not(HaveKey("https://s0.example")), HaveKey("https://s40.example")))
	})

	It("keeps the apps of connected accounts, because anyone can make up servers", func(ctx SpecContext) {
		d, first, second := serverDesk(ctx), newAccount(ctx, v1alpha1.PlatformMastodon), newAccount(ctx, v1alpha1.PlatformMastodon)
		_, err := d.onServer(ctx, "used.example", "used.example").agree(ctx, first).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		d.clock.Step(time.Second)
		late := d.onServer(ctx, "late.example:443", "late.example")
		for i := range 41 {
			d.clock.Step(time.Second)
			d.onServer(ctx, fmt.Sprintf("evil.example:%d", i+1), "")
		}
		Expect(d.serverApps(ctx)).To(And(HaveLen(40), HaveKey("https://used.example"), Not(HaveKey("https://late.example"))))
		_, err = late.agree(ctx, second).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(d.serverApps(ctx)).To(And(HaveLen(40), HaveKey("https://used.example"), HaveKey("https://late.example")))
	})

	It("stores apps up to a limited size, because the Secret also has the session keys", func(ctx SpecContext) {
		d := serverDesk(ctx)
		d.SiteURL = "https://" + strings.Repeat("long.", 200) + "example.com"
		for i := range 25 {
			d.onServer(ctx, fmt.Sprintf("s%d.example", i), "")
			d.clock.Step(time.Second)
		}
		apps := d.serverApps(ctx)
		Expect(apps).To(And(Not(HaveKey("https://s0.example")), HaveKey("https://s24.example")))
		text, err := json.Marshal(apps)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<", 24<<10))
	})

	It("has one app when two replicas register at the same time", func(ctx SpecContext) {
		d := serverDesk(ctx)
		started := make(chan *trip, 4)
		for range cap(started) {
			go func() {
				defer GinkgoRecover()
				started <- d.onServer(ctx, "mastodon.example", "mastodon.example")
			}()
		}
		clients := map[string]bool{}
		for range cap(started) {
			var t *trip
			Eventually(started).Should(Receive(&t))
			_, after, _ := strings.Cut(t.started.Address, "client_id=")
			id, _, _ := strings.Cut(after, "&")
			clients[id] = true
		}
		Expect(clients).To(Equal(map[string]bool{d.serverApps(ctx)["https://mastodon.example"].ClientID: true}))
	})

	DescribeTable("writes nothing after a mistake", func(ctx SpecContext, server string, code bridge.Code, word string) {
		d := serverDesk(ctx, func(c *connect.Config) {
			c.Platforms = platforms.Registry{v1alpha1.PlatformMastodon: mastodon.New(mastodon.Config{}, transport.New(transport.Options{}))}
		})
		_, err := d.Start(ctx, visitor("ann"), d.namespace, connect.Wanted{Platform: v1alpha1.PlatformMastodon, Server: server})
		refuses(err, code, word)
		var secret corev1.Secret
		Expect(env.Client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: sharedSecret}, &secret)).To(Succeed())
		Expect(secret.Data).To(HaveLen(1))
	},
		Entry("a name that is none is not called", "acme", bridge.CodeValidation, "not the name of a server"),
		Entry("a server inside the cluster's network is not called", "localhost.localdomain", bridge.CodeReadinessUnavailable, "could not be reached"),
	)

	It("explains a Secret that others have damaged, without its content", func(ctx SpecContext) {
		d := serverDesk(ctx)
		Expect(env.Client.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: sharedSecret}},
			client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"serverApps":"hidden"}}`)))).To(Succeed())
		_, err := d.Start(ctx, visitor("ann"), d.namespace, connect.Wanted{Platform: v1alpha1.PlatformMastodon, Server: "mastodon.example"})
		Expect(err).To(MatchError(And(ContainSubstring(`remove that key`), Not(ContainSubstring("hidden")))))
	})

	It("tells the user that the manager tries to revoke the access later", func(ctx SpecContext) {
		d, account := serverDesk(ctx), newAccount(ctx, v1alpha1.PlatformMastodon)
		out, err := d.onServer(ctx, "mastodon.example", "mastodon.example").agree(ctx, account).arrive(ctx)
		Expect(err).NotTo(HaveOccurred())
		gone, err := d.Disconnect(ctx, visitor("ann"), d.namespace, out.Connection.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(gone.Message).To(And(ContainSubstring("asks mastodon.example once to revoke its access"), ContainSubstring("To be certain, check the authorized apps")))
	})
})
