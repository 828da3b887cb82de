// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"log/slog"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/quota"
)

// serve returns the service behind the pages, with only the apiserver's permissions. It runs until the test ends.
func serve() *bridge.Service {
	GinkgoHelper()
	log := slog.New(slog.NewTextHandler(GinkgoWriter, nil))
	c, err := kube.NewClient(restricted, "pages")
	Expect(err).NotTo(HaveOccurred())
	events, err := kube.NewEvents(restricted, "pages", clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	keys, teams, connections := kube.NewAPIKeys(c, nil, cache.Indexers{}, clock.RealClock{}), kube.NewTeams(c, clock.RealClock{}), kube.NewConnections(c, nil, clock.RealClock{})
	index := postindex.New()
	var feed *kube.PostFeed
	service := bridge.New(bridge.Config{
		Owner: teams.Owner, Connections: connections, Posts: kube.NewPosts(c), Quota: quota.NewUsageStore(kube.NewUsages(c)), Media: kube.NewMedia(c),
		Files: files, Readiness: readiness.NewChecker(connections, clock.RealClock{}, log).Check, Index: index, Keys: keys, Events: events,
		Subscribe:    func(namespace, name string) (<-chan struct{}, func(), bool) { return feed.Subscribe(namespace, name) },
		Capabilities: capabilities, Clock: clock.RealClock{}, Log: log,
	})
	feed = kube.NewPostFeed(c, nil, index, service.Summarise)
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go teams.RunWithContext(ctx)
	go connections.RunWithContext(ctx)
	Expect(cache.WaitForCacheSync(ctx.Done(), teams.HasSynced, connections.HasSynced)).To(BeTrue())
	go feed.Run(ctx)
	Eventually(feed.Synced()).Should(BeClosed())
	return service
}

var _ = Describe("the web application's operations", func() {
	var (
		t      *team
		s      *bridge.Service
		person bridge.Caller
	)
	setUp := func(ctx context.Context, edits ...func(*v1alpha1.Team)) {
		GinkgoHelper()
		grantPeople(ctx)
		t = newTeam(ctx, edits...)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		s, person = serve(), bridge.Caller{Namespace: t.namespace, Author: "oidc:ada@example.com"}
	}
	// deeds returns the reasons of an object's events.
	deeds := func(ctx context.Context, object client.Object) (reasons []string) {
		GinkgoHelper()
		var found eventsv1.EventList
		Expect(admin.List(ctx, &found, client.InNamespace(t.namespace))).To(Succeed())
		for _, e := range found.Items {
			if e.Regarding.UID == object.GetUID() {
				Expect(e.Note).To(Equal("by oidc:ada@example.com in the web application"))
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons
	}
	say := func(words string, connections ...string) v1alpha1.PostSpec {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryText}
		for _, name := range connections {
			spec.Targets = append(spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: words})
		}
		return spec
	}
	keep := func(ctx context.Context, spec v1alpha1.PostSpec) *v1alpha1.Post {
		GinkgoHelper()
		spec.Draft = true
		made, err := s.CreatePost(ctx, person, bridge.CreatePost{Spec: spec, IdempotencyKey: apitoken.ID(t.namespace, "form")})
		Expect(err).NotTo(HaveOccurred())
		return t.stored(ctx, made.ID)
	}
	month := func(at time.Time) (used int32) {
		for _, u := range t.usages(context.Background()) {
			if u.Spec.Period == at.UTC().Format("2006-01") {
				used = u.Status.Used
			}
		}
		return used
	}

	It("save a draft, edit it, schedule it, reschedule it and cancel it", func(ctx SpecContext) {
		setUp(ctx, onStarter)
		first := say("", "acme-x", "acme-threads")
		first.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "left over"}
		post := keep(ctx, first)
		Expect(post.Labels).To(HaveKeyWithValue(v1alpha1.OriginLabel, v1alpha1.OriginWeb))
		Expect(post.Annotations).To(HaveKeyWithValue(v1alpha1.AuthorAnnotation, person.Author))
		changes, stop, err := s.SubscribePost(person, post.Name)
		Expect(err).NotTo(HaveOccurred())
		defer stop()

		seen := bridge.Version(post)
		Expect(setStatus(ctx, post, func(st *v1alpha1.PostStatus) { st.Phase = v1alpha1.PhaseDraft })).To(Succeed())
		Eventually(changes).Should(Receive(), "the manager wrote")
		post, err = s.UpdateDraft(ctx, person, post.Name, seen, say("Hello", "acme-x"))
		Expect(err).NotTo(HaveOccurred(), "the manager's updates are not conflicts")
		Expect(post.Spec.Draft).To(BeTrue())
		Expect(post.Spec.Targets).To(Equal(say("Hello", "acme-x").Targets), "accounts that the form omits are removed")
		Eventually(changes).Should(Receive())

		_, err = s.UpdateDraft(ctx, person, post.Name, seen, say("Mine", "acme-x"))
		Expect(err).To(MatchError(ContainSubstring("has changed since you opened it, last by oidc:ada@example.com")))

		at := time.Date(2198, 3, 10, 0, 0, 0, 0, time.UTC)
		seen = bridge.Version(post)
		for range 2 { // the button is pressed twice
			post, err = s.Publish(ctx, person, post.Name, seen, say("Hello", "acme-x"), &at)
			Expect(err).NotTo(HaveOccurred())
		}
		stored := t.stored(ctx, post.Name)
		Expect(stored.Spec.Draft).To(BeFalse())
		Expect(stored.Spec.ScheduledAt.Time).To(BeTemporally("==", at))
		Expect(stored.Annotations).To(HaveKeyWithValue(v1alpha1.LastAuthorAnnotation, person.Author))
		Expect(month(at)).To(BeEquivalentTo(1))

		later := at.AddDate(0, 1, 0)
		post, err = s.Reschedule(ctx, person, post.Name, bridge.Version(post), later)
		Expect(err).NotTo(HaveOccurred())
		Expect(month(at)).To(BeZero())
		Expect(month(later)).To(BeEquivalentTo(1))
		found, err := s.FindPosts(ctx, person, &postindex.Search{From: later, To: later.Add(time.Hour), Limit: 5})
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Posts).To(HaveLen(1))

		By("showing the same over REST")
		got := as[postBody](t.call(ctx, "GET", "/posts/"+post.Name, "")).Data
		Expect(got.Status).To(Equal("scheduled"))

		Expect(s.CancelPost(ctx, person, post.Name)).To(Succeed())
		Expect(month(later)).To(BeZero())
		Expect(t.stored(ctx, post.Name).Spec.Cancelled).To(BeTrue())
		Expect(deeds(ctx, post)).To(ConsistOf("CreatedByPerson", "EditedByPerson", "ScheduledByPerson", "RescheduledByPerson", "CancelledByPerson"))
	})

	It("create a key, rotate its token without an interruption, and revoke it", func(ctx SpecContext) {
		setUp(ctx)
		opens := func(made bridge.NewToken) func() int {
			return func() int {
				return do(ctx, instance, "GET", base+"/posts", "", map[string]string{"Authorization": "Bearer " + made.Token}).status
			}
		}
		first, err := s.CreateKey(ctx, person, "CI", time.Now().Add(time.Hour))
		Expect(err).NotTo(HaveOccurred())
		Eventually(opens(first)).Should(Equal(200))
		second, err := s.RollKey(ctx, person, first.Key)
		Expect(err).NotTo(HaveOccurred())
		Eventually(opens(second)).Should(Equal(200))
		Expect(opens(first)()).To(Equal(200))
		_, err = s.RollKey(ctx, person, first.Key)
		Expect(err).To(HaveField("Code", bridge.CodeConflict))
		Expect(s.RemoveToken(ctx, person, first.Key, first.Name)).To(Succeed())
		Eventually(opens(first)).Should(Equal(401))
		Expect(opens(second)()).To(Equal(200))

		listed, err := s.ListKeys(ctx, person)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveLen(2), "the team's own and this one")
		Expect(listed).To(ContainElement(And(HaveField("ID", first.Key), HaveField("State", bridge.KeyActive), HaveField("Description", "CI"),
			HaveField("Author", person.Author), HaveField("Tokens", ConsistOf(HaveField("Shown", apitoken.Shown(second.Token)))))))

		Expect(s.RevokeKey(ctx, person, first.Key)).To(Succeed())
		Eventually(opens(second)).Should(Equal(401))
		key := &v1alpha1.APIKey{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: first.Key}, key)).To(Succeed())
		Expect(deeds(ctx, key)).To(ConsistOf("KeyCreatedByPerson", "TokenAddedByPerson", "TokenRemovedByPerson", "KeyRevokedByPerson"))
		Expect(s.RevokeKey(ctx, bridge.Caller{Namespace: "team-other", Author: person.Author}, first.Key)).To(HaveField("Code", bridge.CodeNotFound), "a key of another team")
	})
})
