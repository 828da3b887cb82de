// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// The full upgrade campaign. The short one, which runs for every change, only sends a few posts to X, where unknown
// outcomes are settled fastest, and only kills managers.
const (
	manyUpgradePosts, manyUpgradeKills, manyUpgradeTeams = 600, 120, 2
	someUpgradePosts, someUpgradeKills                   = 20, 4
)

// definitions is the directory with this version's CRDs.
var definitions = filepath.Join(repository, "config", "crd", "bases")

// removed lists the fields that were deliberately removed from this version's CRDs. The earlier programs never write
// them.
var removed = []string{"Team.spec: ttlAfterFinished was removed"}

// withRemoved returns a folder with this version's CRDs plus the removed field, without which the earlier programs do
// not start.
func withRemoved(earlier string) string {
	GinkgoHelper()
	both := GinkgoT().TempDir()
	Expect(os.CopyFS(both, os.DirFS(definitions))).To(Succeed())
	read := func(folder string) *apiextensionsv1.CustomResourceDefinition {
		data, err := os.ReadFile(filepath.Join(folder, "social.herald.dev_teams.yaml"))
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(data, crd)).To(Succeed())
		return crd
	}
	before, teams := read(earlier), read(both)
	if field, known := schemaOf(before).Properties["spec"].Properties["ttlAfterFinished"]; known {
		schemaOf(teams).Properties["spec"].Properties["ttlAfterFinished"] = field
	}
	data, err := yaml.Marshal(teams)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(both, "social.herald.dev_teams.yaml"), data, 0o600)).To(Succeed())
	return both
}

// writeWithAddresses writes this version's configuration for an earlier one, which reads the addresses of each platform
// instead of platforms.sandbox.
func writeWithAddresses(name string) {
	GinkgoHelper()
	data, err := os.ReadFile(inFolder(present.configuration))
	Expect(err).NotTo(HaveOccurred())
	var config map[string]any
	Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	sections, ok := config["platforms"].(map[string]any)
	Expect(ok).To(BeTrue())
	delete(sections, "sandbox")
	for on, section := range sections {
		base := "http://" + toPlatform.address() + "/" + on
		maps.Copy(section.(map[string]any), map[string]any{
			"apiURL": base, "webURL": platform.URL + "/" + on, "facebookURL": base + "/graph.facebook.com",
			"uploadURL": base + "/rupload.facebook.com",
		})
	}
	data, err = yaml.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(inFolder(name), data, 0o600)).To(Succeed())
}

// checkConfiguration returns an error if a version rejects its configuration file.
func checkConfiguration(ctx context.Context, v *version) error {
	out, err := exec.CommandContext(ctx, inFolder(v.program), "config", "check", inFolder(v.configuration)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s rejects its configuration: %w: %s", v.name, err, out)
	}
	return nil
}

// install applies the CRDs of a folder, as a chart upgrade or rollback does.
func install(folder string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := envtest.InstallCRDs(kubernetes, envtest.CRDInstallOptions{Paths: []string{folder}, ErrorIfPathMissing: true})
		return err
	}).Should(Succeed())
}

// alternate makes the two versions alternate whenever a manager is killed. end reverts that.
func alternate(a, b *version) (end func()) {
	a.next, b.next = b, a
	return func() { a.next, b.next = a, b }
}

// Upgrades between two versions of Herald. `make test-upgrade` builds the earlier one.
var _ = Describe("An upgrade", Ordered, Label("upgrade"), func() {
	previous := &version{configuration: present.configuration}
	var earlier, both string // folders of its CRDs, and of those that both versions accept
	var c *campaign
	var before map[v1alpha1.Platform]int

	BeforeAll(func(ctx SpecContext) {
		build := os.Getenv("PREVIOUS_BUILD")
		if build == "" {
			Skip("PREVIOUS_BUILD is not set to a folder with an earlier version; `make test-upgrade` builds one")
		}
		previous.name, previous.program, earlier = filepath.Base(build), filepath.Join(build, "herald"), filepath.Join(build, "crd")
		both = withRemoved(earlier)
		if checkConfiguration(ctx, previous) != nil {
			previous.configuration = "addresses.yaml"
			writeWithAddresses(previous.configuration)
		}
		Expect(checkConfiguration(ctx, previous)).To(Succeed())
		Expect(checkConfiguration(ctx, present)).To(Succeed())
		before = publishCallsEverywhere(ctx)
		c = &campaign{sum: newTotals(), onto: []v1alpha1.Platform{v1alpha1.PlatformX}}
		if long {
			c.onto = connected()
		}
		DeferCleanup(func() {
			c.end()
			install(definitions)
		})
	})

	It("accepts everything that the earlier version writes", func() {
		problems, err := narrowedBetween(earlier, definitions)
		Expect(err).NotTo(HaveOccurred())
		problems = slices.DeleteFunc(problems, func(problem string) bool { return slices.Contains(removed, problem) })
		Expect(problems).To(BeEmpty(), "the CRDs of %s accepted it; see docs/upgrades.md", previous.name)
	})

	It("alternates both versions throughout the campaign", func(ctx SpecContext) {
		posts, kills, teams := someUpgradePosts, someUpgradeKills, 1
		if long {
			posts, kills, teams = manyUpgradePosts, manyUpgradeKills, manyUpgradeTeams
		}
		install(earlier)
		c.managers = append(c.managers, previous.start())
		for range teams {
			c.teams = append(c.teams, newTeam(ctx))
		}
		c.post(ctx, posts/kills)
		install(both)
		defer alternate(previous, present)()
		if long {
			c.run(ctx, posts, kills)
			return
		}
		for c.kills() < kills {
			c.post(ctx, posts/kills)
			c.killAtPoint()
		}
	})

	// rolledBack starts posts of all kinds with this version, kills it in the middle of delivery, and lets the earlier
	// version finish.
	rolledBack := func(ctx SpecContext, meanwhile func()) {
		GinkgoHelper()
		c.end()
		m := present.start()
		c.managers = []*process{m}
		Expect(platform.ClearFaults(ctx)).To(Succeed())
		t := c.teams[rand.IntN(len(c.teams))]
		for _, on := range c.onto {
			// Slow responses are still outstanding when the manager dies.
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: string(on), Account: t.accounts[on].ID, Operation: "publish", Kind: "delay", DelayMS: 1500, Times: 3,
			})).To(Succeed())
		}
		met := points.once(post.PointAfterAnswer, m.kill)
		for i, p := range public() {
			if !slices.Contains(c.onto, p.to) {
				continue
			}
			var at time.Time
			if i%3 == 0 {
				at = time.Now().Add(8 * time.Second)
			}
			t.say(ctx, p.kind, fmt.Sprintf("rolled back %d", serial.Add(1)), at, p.to)
		}
		Eventually(met).Should(BeClosed())
		c.sum.kills++
		meanwhile()
		c.managers[0] = previous.start()
		settle(ctx, c.teams...)
	}

	It("completes under the earlier version with this version's CRDs", func(ctx SpecContext) {
		if !long {
			Skip("lookups of unknown outcomes take long: the short form waits for them once")
		}
		rolledBack(ctx, func() {})
	})

	It("completes under the earlier version and its CRDs", func(ctx SpecContext) {
		rolledBack(ctx, func() { install(earlier) })
		c.end()
	})

	It("has published each post exactly once", func(ctx SpecContext) {
		fmt.Printf("upgrade: started %d managers of %s and %d of %s\n", previous.starts, previous.name, present.starts, present.name)
		Expect(previous.starts).NotTo(BeZero())
		Expect(present.starts).NotTo(BeZero())
		c.verify(ctx, "upgrade from "+previous.name, before)
	})

	// An earlier version does not have the status fields that a later one added.
	It("loses only status fields unknown to the earlier version", func(ctx SpecContext) {
		const added = "addedLater"
		install(both)
		extend(ctx, added)
		m := previous.start()
		c.managers = []*process{m}
		t := c.teams[0]
		var made *sent
		named := make(chan struct{})
		met := points.once(post.PointAfterAnswer, func() {
			<-named
			write(ctx, made, added)
		})
		made = t.post(ctx, aText, "a field added later", v1alpha1.PlatformThreads)
		close(named)
		Eventually(met).Should(BeClosed())
		settle(ctx, t)
		target := targetOf(ctx, made)
		Expect(target).To(HaveKeyWithValue("phase", string(v1alpha1.PhasePosted)))
		Expect(target).NotTo(HaveKey(added), "the earlier version writes the whole status")
		sum := newTotals()
		sum.verifyTeam(ctx, t)
		all := sum.sum(everyPair)
		Expect([]int{all.twice, all.lost, all.denied}).To(Equal([]int{0, 0, 0}), "published twice, lost, or published but failed")
	})
})

// extend adds a field to the target status, as a later CRD does.
func extend(ctx SpecContext, field string) {
	GinkgoHelper()
	Eventually(func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := k8s.Get(ctx, types.NamespacedName{Name: "posts.social.herald.dev"}, crd); err != nil {
			return err
		}
		targets := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["targets"]
		targets.Items.Schema.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		return k8s.Update(ctx, crd)
	}).Should(Succeed())
}

// write sets a field that Herald's types do not have in the first target.
func write(ctx SpecContext, p *sent, field string) {
	defer GinkgoRecover()
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status/targets/0/" + field, "value": "kept"}})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		g.Expect(k8s.Status().Patch(ctx, p.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
		// The API server serves a changed CRD after a short delay.
		g.Expect(targetOf(ctx, p)).To(HaveKeyWithValue(field, "kept"))
	}).Should(Succeed())
}

// targetOf returns the stored status of a post's first target.
func targetOf(ctx SpecContext, p *sent) map[string]any {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), object)).To(Succeed())
	targets, _, err := unstructured.NestedSlice(object.Object, "status", "targets")
	Expect(err).NotTo(HaveOccurred())
	Expect(targets).NotTo(BeEmpty())
	target, ok := targets[0].(map[string]any)
	Expect(ok).To(BeTrue())
	return target
}
