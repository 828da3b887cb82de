// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package flux_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

// made counts the suite's teams.
var made int

// aTeam creates a namespace, a Team and a Connection to an account on X, and returns the namespace and the account.
func aTeam(ctx context.Context) (namespace, account string) {
	GinkgoHelper()
	team, account := nextTeam()
	objects := suite.Must(cluster.ParseObjects([]byte(teamFile(ctx, team, account))))
	for _, o := range objects {
		Expect(admin.Create(ctx, o)).To(Succeed())
	}
	namespace = "team-" + team
	Eventually(func(g Gomega) {
		conn := &v1alpha1.Connection{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "x"}, conn)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", conn.Status.Conditions)
	}).Should(Succeed())
	return namespace, account
}

func nextTeam() (team, account string) {
	made++
	return fmt.Sprintf("flux-%d", made), fmt.Sprintf("77100000000000%05d", made)
}

// teamFile returns the manifest for a new team from docs/gitops.md.
func teamFile(ctx context.Context, team, account string) string {
	GinkgoHelper()
	granted := suite.Must(platform.Account(ctx, "x", account, nil))
	return strings.NewReplacer("TEAM", team, "ACCOUNT", account, "ACCESS", granted.AccessToken, "REFRESH", granted.RefreshToken,
		"SCOPES", strings.Join(granted.Scopes, " ")).Replace(`apiVersion: v1
kind: Namespace
metadata:
  name: team-TEAM
  labels: {social.herald.dev/team: TEAM}
---
apiVersion: social.herald.dev/v1alpha1
kind: Team
metadata: {name: TEAM}
spec:
  namespace: team-TEAM
  subscription: {plan: unlimited, state: active}
  retention: {inCluster: 7d}
  budget: {postBytes: 268435456}
---
apiVersion: v1
kind: Secret
metadata: {name: x-credentials, namespace: team-TEAM}
stringData:
  accessToken: ACCESS
  refreshToken: REFRESH
  scopes: SCOPES
---
apiVersion: social.herald.dev/v1alpha1
kind: Connection
metadata: {name: x, namespace: team-TEAM}
spec:
  platform: x
  accountID: "ACCOUNT"
  credentialsSecretRef: {name: x-credentials}
`)
}

// postFile returns a Post manifest, with additional lines in its spec and metadata.
func postFile(namespace, name, caption string, more ...string) string {
	spec, metadata := "", ""
	for _, line := range more {
		if annotation, ok := strings.CutPrefix(line, "annotation "); ok {
			metadata = "\n  annotations: {" + annotation + "}"
			continue
		}
		spec += "\n  " + line
	}
	return fmt.Sprintf(`apiVersion: social.herald.dev/v1alpha1
kind: Post
metadata:
  name: %s
  namespace: %s%s
spec:
  category: text%s
  targets:
  - connectionRef: {name: x}
    caption: %s
`, name, namespace, metadata, spec, caption)
}

func at(d time.Duration) string {
	return "scheduledAt: " + time.Now().Add(d).UTC().Format(time.RFC3339)
}

func read(ctx context.Context, namespace, name string) *v1alpha1.Post {
	GinkgoHelper()
	p := &v1alpha1.Post{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)).To(Succeed())
	return p
}

func texts(ctx context.Context, account string) []string {
	GinkgoHelper()
	posts := suite.Must(platform.Posts(ctx, "x", account))
	found := []string{}
	for _, p := range posts {
		found = append(found, p.Text)
	}
	return found
}

var _ = Describe("Flux", func() {
	It("applies a team, its account and its posts together, waits until the posts are published, and detects no drift afterwards", func(ctx SpecContext) {
		team, account := nextTeam()
		k := newSync(ctx, team, nil)
		k.expectReady(ctx, k.push(ctx, map[string]string{
			"team.yaml": teamFile(ctx, team, account), "post.yaml": postFile("team-"+team, "opening", "We are open."),
		}))
		Expect(texts(ctx, account)).To(Equal([]string{"We are open."}))
		before := read(ctx, "team-"+team, "opening")
		k.reconcile(ctx)
		Expect(read(ctx, "team-"+team, "opening").ResourceVersion).To(Equal(before.ResourceVersion))
		Expect(k.state(ctx).Ready).To(Equal("True"))
	})

	It("does not consider posts ready before a manager has processed them", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		manager.Stop()
		k := newSync(ctx, "unseen", map[string]any{"timeout": "5s"})
		revision := k.push(ctx, map[string]string{"post.yaml": postFile(namespace, "later", "later", at(time.Hour))})
		Eventually(func() state { return k.state(ctx) }).Should(And(HaveField("Ready", "False"), HaveField("Reason", "HealthCheckFailed")))
		manager = start()
		k.expectReady(ctx, revision)
		Expect(texts(ctx, account)).To(BeEmpty())
	})

	It("waits for publication only with the expressions in config/gitops", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		data := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "config", "gitops", "flux-published.yaml")))
		var expressions map[string]any
		Expect(yaml.Unmarshal(data, &expressions)).To(Succeed())
		soon := newSync(ctx, "accepted", nil)
		soon.expectReady(ctx, soon.push(ctx, map[string]string{"post.yaml": postFile(namespace, "far", "far away", at(time.Hour))}))
		out := newSync(ctx, "published", expressions)
		out.expectReady(ctx, out.push(ctx, map[string]string{"post.yaml": postFile(namespace, "near", "near", at(4*time.Second))}))
		Expect(texts(ctx, account)).To(Equal([]string{"near"}))
	})

	It("keeps syncing after a user has cancelled a post, which stays cancelled", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		k := newSync(ctx, "cancelled", nil)
		file := func(caption string, when time.Duration) map[string]string {
			return map[string]string{
				"post.yaml":  postFile(namespace, "launch", caption, at(when), "draft: false", "cancelled: false"),
				"other.yaml": postFile(namespace, "other", "another one of the set", at(time.Hour), "draft: false"),
			}
		}
		first := file("launch", time.Hour)
		k.expectReady(ctx, k.push(ctx, first))
		p := read(ctx, namespace, "launch")
		Expect(admin.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`)), client.FieldOwner("kubectl-patch"))).To(Succeed())
		Eventually(func() *v1alpha1.Time { return read(ctx, namespace, "launch").Status.CancelledAt }).ShouldNot(BeNil())

		k.reconcile(ctx)
		Expect(k.state(ctx).Ready).To(Equal("True"), "the same files after another apply: %+v", k.state(ctx))
		k.expectReady(ctx, k.push(ctx, file("launch, at once", -time.Second)))
		p = read(ctx, namespace, "launch")
		Expect(p.Spec.Targets[0].Caption).To(Equal("launch, at once"), "the edit is applied")
		Expect(p.Status.Phase).To(Equal(v1alpha1.PhaseCancelled))
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		Expect(ready.Message).To(ContainSubstring("later changes have no effect"))
		Expect(texts(ctx, account)).To(BeEmpty())

		again := file("launch", time.Hour)
		delete(again, "post.yaml")
		k.expectReady(ctx, k.push(ctx, again))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(p), p))).To(BeTrue(), "the post is pruned")
		Expect(texts(ctx, account)).To(BeEmpty())
	})

	It("does not replace a cancelled post when it replaces rejected objects", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		k := newSync(ctx, "forced", map[string]any{"force": true})
		file := map[string]string{"post.yaml": postFile(namespace, "launch", "launch", at(time.Hour), "cancelled: false")}
		k.expectReady(ctx, k.push(ctx, file))
		p := read(ctx, namespace, "launch")
		Expect(admin.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancelled":true}}`)))).To(Succeed())
		Eventually(func() *v1alpha1.Time { return read(ctx, namespace, "launch").Status.CancelledAt }).ShouldNot(BeNil())
		k.reconcile(ctx)
		now := read(ctx, namespace, "launch")
		Expect(now.UID).To(Equal(p.UID))
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseCancelled))
		Expect(texts(ctx, account)).To(BeEmpty())
	})

	It("reverts a user's edit before delivery starts", func(ctx SpecContext) {
		namespace, _ := aTeam(ctx)
		k := newSync(ctx, "drift", nil)
		k.expectReady(ctx, k.push(ctx, map[string]string{"post.yaml": postFile(namespace, "launch", "as Git says", at(time.Hour))}))
		p := read(ctx, namespace, "launch")
		p.Spec.Targets[0].Caption = "as somebody says"
		Expect(admin.Update(ctx, p, client.FieldOwner("kubectl-edit"))).To(Succeed())
		k.reconcile(ctx)
		Expect(read(ctx, namespace, "launch").Spec.Targets[0].Caption).To(Equal("as Git says"))
		Expect(k.state(ctx).Ready).To(Equal("True"))
	})

	It("is blocked by an edit of a published post, unless it only creates posts", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		alone := newSync(ctx, "alone", nil)
		const annotation = "annotation kustomize.toolkit.fluxcd.io/ssa: IfNotPresent"
		alone.expectReady(ctx, alone.push(ctx, map[string]string{"post.yaml": postFile(namespace, "kept", "a tpyo", annotation)}))
		alone.expectReady(ctx, alone.push(ctx, map[string]string{"post.yaml": postFile(namespace, "kept", "a typo", annotation)}))
		held := newSync(ctx, "held", nil)
		held.expectReady(ctx, held.push(ctx, map[string]string{"post.yaml": postFile(namespace, "edited", "another tpyo")}))
		held.push(ctx, map[string]string{"post.yaml": postFile(namespace, "edited", "another typo")})
		Eventually(func() state { return held.state(ctx) }).Should(And(HaveField("Ready", "False"), HaveField("Message", ContainSubstring("the spec is frozen"))))
		Expect(texts(ctx, account)).To(ConsistOf("a tpyo", "another tpyo"))
	})

	It("publishes a pruned and reapplied post once", func(ctx SpecContext) {
		namespace, account := aTeam(ctx)
		k := newSync(ctx, "pruned", nil)
		files := map[string]string{
			"post.yaml": postFile(namespace, "once", "said once"), "other.yaml": postFile(namespace, "stays", "stays", at(time.Hour)),
		}
		k.expectReady(ctx, k.push(ctx, files))
		text := files["post.yaml"]
		delete(files, "post.yaml")
		k.expectReady(ctx, k.push(ctx, files))
		Eventually(func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "once"}, &v1alpha1.Post{}))
		}).Should(BeTrue())
		files["post.yaml"] = text
		k.expectReady(ctx, k.push(ctx, files))
		Expect(read(ctx, namespace, "once").Status.Phase).To(Equal(v1alpha1.PhasePosted))
		Expect(texts(ctx, account)).To(Equal([]string{"said once"}))
	})
})
