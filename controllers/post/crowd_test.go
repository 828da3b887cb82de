// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// crowdSize is the number of posts in these specs. Each has its own account.
const crowdSize = 4

// crowd is a set of a team's posts that are all due at the same time, a few seconds from now.
type crowd struct {
	team
	prefix string
	due    time.Time
	posts  []*v1alpha1.Post
}

func newCrowd(ctx context.Context, in time.Duration) *crowd {
	c := &crowd{team: newTeam(ctx), prefix: fmt.Sprintf("crowd%d", serial.Add(1)), due: time.Now().Add(in).Truncate(time.Millisecond)}
	for i := range crowdSize {
		name := fmt.Sprintf("account-%d", i)
		c.connect(ctx, name)
		c.posts = append(c.posts, c.post(ctx, fmt.Sprint("post ", i), func(p *v1alpha1.Post) {
			p.Spec.ScheduledAt = v1alpha1.NewTimePtr(c.due)
			p.Spec.Targets[0].ConnectionRef.Name = name
		}))
	}
	return c
}

// options configures a manager to arm the crowd.
func (c *crowd) options(o *post.Options) {
	o.Groups = &post.Groups{Namespace: metav1.NamespaceDefault, Prefix: c.prefix, Owners: func(context.Context) []metav1.OwnerReference { return nil }}
	o.CrowdSize = crowdSize
	o.Suspension = c.suspension(func() bool { return false })
}

// suspension suspends the teams of other specs: one of their posts whose outcome is unknown may be sent again at any
// time, and publishCalls would count it.
func (c *crowd) suspension(own func() bool) func(context.Context, string) (bool, []v1alpha1.Suspension, error) {
	return func(_ context.Context, namespace string) (bool, []v1alpha1.Suspension, error) {
		return namespace != c.namespace || own(), nil, nil
	}
}

// stopAt starts a manager that stops working at a failpoint, as if it had died there. goOn lets it continue, as if it
// had only been slow, and then stops it.
func (c *crowd) stopAt(point string) (goOn func()) {
	ended := make(chan struct{})
	m := startManager(c.options, func(o *post.Options) {
		o.Failpoint = func(at string) {
			if at == point {
				<-ended
			}
		}
	})
	goOn = sync.OnceFunc(func() { close(ended); m.stop() })
	DeferCleanup(goOn)
	return goOn
}

// groups returns the groups of the posts' attempts, in the order of the posts.
func (c *crowd) groups(ctx context.Context) func() []string {
	return func() (groups []string) {
		for _, p := range c.posts {
			if targets := read(ctx, p).Status.Targets; len(targets) > 0 && targets[0].Attempt != nil {
				groups = append(groups, targets[0].Attempt.Group)
			}
		}
		return groups
	}
}

// armed waits until every post is claimed in a group, and checks that they are not due.
func (c *crowd) armed(ctx context.Context) {
	GinkgoHelper()
	Eventually(c.groups(ctx)).Should(And(HaveLen(crowdSize), HaveEach(HavePrefix(c.prefix+"-group-"))))
	Expect(time.Now()).To(BeTemporally("<", c.due), "the posts were claimed when they were due")
}

// publishedOnce waits until every post is published, and checks that one call was made for each.
func (c *crowd) publishedOnce(ctx context.Context, before int) {
	GinkgoHelper()
	for _, p := range c.posts {
		posted(ctx, p)
		Expect(read(ctx, p).Status.Targets[0].PostedAt.Time).To(BeTemporally(">=", c.due))
	}
	Expect(publishCalls(ctx) - before).To(Equal(crowdSize))
}

var _ = Describe("A crowd", func() {
	It("is claimed before its time, and sent when its group is opened", func(ctx SpecContext) {
		c := newCrowd(ctx, 6*time.Second)
		before := publishCalls(ctx)
		runManager(c.options)
		c.armed(ctx)
		By("cancelling an armed post")
		_, err := tryEdit(ctx, c.posts[0], func(p *v1alpha1.Post) { p.Spec.Cancelled = true })
		Expect(err).To(MatchError(ContainSubstring("delivery has already begun")))
		Expect(publishCalls(ctx)).To(Equal(before), "calls before the time")
		c.publishedOnce(ctx, before)
		var lease coordinationv1.Lease
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: c.prefix + "-group-00"}, &lease)).To(Succeed())
		Expect(lease.Annotations).To(HaveKeyWithValue("social.herald.dev/group", "open"))
	})

	It("is not sent if its team has been suspended by then, and is sent afterwards", func(ctx SpecContext) {
		c := newCrowd(ctx, 6*time.Second)
		before := publishCalls(ctx)
		var suspended atomic.Bool
		runManager(c.options, func(o *post.Options) {
			o.Suspension = c.suspension(suspended.Load)
		})
		c.armed(ctx)
		suspended.Store(true)
		Eventually(messageOf(ctx, c.posts[0])).WithTimeout(20 * time.Second).Should(ContainSubstring("suspended"))
		Expect(publishCalls(ctx)).To(Equal(before), "calls of a suspended team")
		suspended.Store(false)
		for _, p := range c.posts { // any change of the Team wakes them
			edit(ctx, p, func(p *v1alpha1.Post) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "test", "wake") })
		}
		c.publishedOnce(ctx, before)
	})

	It("stops if its team is suspended during the calls, and its unsent posts can be cancelled", func(ctx SpecContext) {
		c := newCrowd(ctx, 6*time.Second)
		before := publishCalls(ctx)
		var suspended atomic.Bool
		runManager(c.options, func(o *post.Options) {
			o.Suspension = c.suspension(suspended.Load)
			o.Failpoint = func(at string) {
				if at == post.PointAfterOpen {
					suspended.Store(true)
				}
			}
		})
		c.armed(ctx)
		for _, p := range c.posts {
			Eventually(messageOf(ctx, p)).WithTimeout(20 * time.Second).Should(ContainSubstring("suspended"))
			Expect(read(ctx, p).Status.Targets[0].Attempt.Outcome).To(Equal(v1alpha1.OutcomeNotSent))
		}
		Expect(publishCalls(ctx)).To(Equal(before), "calls of a suspended team")
		By("cancelling a post whose call was withheld")
		edit(ctx, c.posts[0], func(p *v1alpha1.Post) { p.Spec.Cancelled = true })
		Eventually(phase(ctx, c.posts[0])).Should(Equal(v1alpha1.PhaseCancelled))
		suspended.Store(false)
		for _, p := range c.posts[1:] { // any change of the Team wakes them
			edit(ctx, p, func(p *v1alpha1.Post) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "test", "wake") })
			posted(ctx, p)
		}
		Expect(publishCalls(ctx)-before).To(Equal(crowdSize-1), "calls")
	})

	It("excludes a connection that was disabled after the post was armed", func(ctx SpecContext) {
		c := newCrowd(ctx, 6*time.Second)
		before := publishCalls(ctx)
		runManager(c.options)
		c.armed(ctx)
		conn := &v1alpha1.Connection{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: c.posts[0].Namespace, Name: "account-0"}, conn)).To(Succeed())
		conn.Spec.Disabled = true
		Expect(k8s.Update(ctx, conn)).To(Succeed())
		for _, p := range c.posts[1:] {
			posted(ctx, p)
		}
		Eventually(messageOf(ctx, c.posts[0])).WithTimeout(20 * time.Second).Should(ContainSubstring("disabled"))
		Expect(publishCalls(ctx)-before).To(Equal(crowdSize-1), "calls")
	})

	It("can be cancelled after it was recovered from a dead leader", func(ctx SpecContext) {
		c := newCrowd(ctx, 8*time.Second)
		before := publishCalls(ctx)
		goOn := c.stopAt(post.PointBeforeOpen)
		c.armed(ctx)
		runManager(c.options, func(o *post.Options) { // nothing is armed again
			o.Suspension = func(context.Context, string) (bool, []v1alpha1.Suspension, error) { return true, nil, nil }
		})
		takenBack := func(p *v1alpha1.Post) {
			GinkgoHelper()
			Eventually(func() v1alpha1.AttemptOutcome { return read(ctx, p).Status.Targets[0].Attempt.Outcome }).Should(Equal(v1alpha1.OutcomeNotSent))
		}
		takenBack(c.posts[0])
		goOn() // its group is closed; it ends, and no longer arms posts
		for _, p := range c.posts {
			takenBack(p)
			edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Cancelled = true })
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		}
		Expect(publishCalls(ctx)).To(Equal(before), "calls for cancelled posts")
	})

	It("is recovered from a leader that dies before it opens the group", func(ctx SpecContext) {
		c := newCrowd(ctx, 6*time.Second)
		before := publishCalls(ctx)
		goOn := c.stopAt(post.PointBeforeOpen)
		c.armed(ctx)
		first := c.groups(ctx)()
		runManager(c.options)
		Eventually(c.groups(ctx)).Should(And(HaveLen(crowdSize), Not(ContainElements(first))))
		c.publishedOnce(ctx, before)
		goOn() // it can no longer open its group
		Expect(publishCalls(ctx) - before).To(Equal(crowdSize))
	})

	It("is looked up if the leader dies after it opened the group", func(ctx SpecContext) {
		c := newCrowd(ctx, 5*time.Second)
		before := publishCalls(ctx)
		c.stopAt(post.PointAfterOpen)
		c.armed(ctx)
		first := c.groups(ctx)()
		Eventually(func(g Gomega) {
			var lease coordinationv1.Lease
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: c.prefix + "-group-00"}, &lease)).To(Succeed())
			g.Expect(lease.Annotations).To(HaveKeyWithValue("social.herald.dev/group", "open"))
		}).WithTimeout(15 * time.Second).Should(Succeed())
		runManager(c.options)
		Consistently(c.groups(ctx)).WithTimeout(time.Second).Should(Equal(first), "claims of an open group remain")
		for _, p := range c.posts {
			Eventually(phase(ctx, p)).WithTimeout(time.Minute).Should(Equal(v1alpha1.PhasePosted))
			Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeNumerically("==", 2))
		}
		Expect(publishCalls(ctx) - before).To(Equal(crowdSize))
	})
})
