// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/test/envtest"
)

// mostName is the maximum length of an object's name.
const mostName = 253

// ownedNames returns a managedFields entry that a client could claim: made-up field names of the given total size,
// below a part of the object.
func ownedNames(manager string, bytes int, path ...string) metav1.ManagedFieldsEntry {
	names := map[string]any{}
	for i := 0; bytes > 0; i++ {
		name := fmt.Sprintf("f:%0100d", i)
		names[name] = map[string]any{}
		bytes -= len(name) + len(`"":{},`)
	}
	for _, part := range slices.Backward(path) {
		names = map[string]any{part: names}
	}
	raw, err := json.Marshal(names)
	Expect(err).NotTo(HaveOccurred())
	now := metav1.Now()
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1alpha1.GroupVersion.String(), Time: &now,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}
}

// room is a part of an object that a user can fill; add fills it with the given number of bytes.
type room struct {
	what string
	add  func(o client.Object, bytes int)
}

// around returns the ways to enlarge an object's metadata: each list in ObjectMeta, and names of fields that the object
// does not have, at every level of managedFields.
func around() []room {
	owned := func(manager string, path ...string) room {
		return room{"managedFields " + manager, func(o client.Object, bytes int) {
			o.SetManagedFields(append(o.GetManagedFields(), ownedNames(manager, bytes, path...)))
		}}
	}
	return []room{
		{"annotations", func(o client.Object, bytes int) {
			o.SetAnnotations(map[string]string{"example.com/much": strings.Repeat("<", bytes/6)})
		}},
		{"labels", func(o client.Object, bytes int) {
			labels := map[string]string{}
			for i := 0; bytes > 0; i++ {
				key := fmt.Sprintf("example.com/%060d", i)
				labels[key] = strings.Repeat("a", 63)
				bytes -= len(key) + 63 + 6
			}
			o.SetLabels(labels)
		}},
		{"finalizers", func(o client.Object, bytes int) {
			for i := 0; bytes > 0; i++ {
				name := fmt.Sprintf("example.com/%060d", i)
				o.SetFinalizers(append(o.GetFinalizers(), name))
				bytes -= len(name) + 3
			}
		}},
		{"ownerReferences", func(o client.Object, bytes int) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: strings.Repeat("<", bytes/6), UID: "1"}})
		}},
		owned("of the spec", "f:spec"),
		owned("of the metadata", "f:metadata", "f:annotations"),
		owned("of the status", "f:status", "f:targets", `k:{"index":0}`),
		owned("of leaves", "f:spec", "f:targets", "f:a", "f:b", "f:c", "f:d"),
		owned("below every field", "f:spec", "f:a", "f:b", "f:c", "f:d", "f:e", "f:f", "f:g"),
		owned("of strange names", "f:spec", `k:{"<<<<<<<<<<<<<<<<<<<<<<":"<<<<<<<<<<<<<<<<<<<<"}`),
	}
}

// fullest creates, step by step, the largest object that a user can store: it adds to each kind of data until the API
// server rejects more, to within a kibibyte. It returns the number of bytes stored.
func fullest(ctx context.Context, c client.Client, o client.Object, rooms []room) int {
	GinkgoHelper()
	full := o.DeepCopyObject().(client.Object)
	for _, r := range rooms {
		base := full
		for admitted, step := 0, 256<<10; step >= 1024; step /= 2 {
			larger := base.DeepCopyObject().(client.Object)
			r.add(larger, admitted+step)
			if c.Create(ctx, larger.DeepCopyObject().(client.Object), client.DryRunAll) == nil {
				admitted, full = admitted+step, larger
			}
		}
	}
	Expect(c.Create(ctx, full)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has its own context
		full.SetFinalizers(nil)
		full.SetManagedFields(nil)
		Expect(admin.Update(ctx, full)).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, full))).To(Succeed())
	})
	for i := range 4 { // fields of more managers, in addition to the existing ones
		larger := full.DeepCopyObject().(client.Object)
		larger.SetManagedFields(append(larger.GetManagedFields(), ownedNames(fmt.Sprint("later-", i), 12<<10, "f:spec")))
		if c.Update(ctx, larger) == nil {
			full = larger
		}
	}
	stored, err := json.Marshal(full)
	Expect(err).NotTo(HaveOccurred())
	return len(stored)
}

// longName returns a name of the maximum length.
func longName(i int) string {
	label := strings.Repeat("a", 59)
	return fmt.Sprintf("%s.%s.%s.%s-%013d", label, label, label, label, i)[:mostName]
}

// texts fills the captions of a Post with the given number of targets.
func texts(targets int, text string) func(client.Object, int) {
	return func(o client.Object, bytes int) {
		p := o.(*v1alpha1.Post)
		p.Spec.Targets = nil
		for i := range targets {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: longName(i)}, Caption: strings.Repeat(text, min(bytes/targets/len(text), 65_536)),
			})
		}
	}
}

// references fills a draft of a tree with media references.
func references(o client.Object, bytes int) {
	p := o.(*v1alpha1.Post)
	p.Spec.Category, p.Spec.Draft, p.Spec.Tree = v1alpha1.CategoryTree, true, &v1alpha1.TreeContent{}
	p.Spec.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: longName(0)}}}
	for i := 0; bytes > 0; i++ {
		if i%100 == 0 {
			p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, v1alpha1.TreeCard{})
		}
		card := &p.Spec.Tree.Cards[len(p.Spec.Tree.Cards)-1]
		card.MediaRefs = append(card.MediaRefs, v1alpha1.MediaReference{Name: longName(i)})
		bytes -= mostName
	}
}

// A team's storage is limited to the number of objects that the quota permits, times their maximum size. The webhook is
// left out of this test, since it can only reject more.
var _ = Describe("The storage available to each user role", Ordered, func() {
	post := func(name string) *v1alpha1.Post {
		return &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: name},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{
				ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "a",
			}}},
		}
	}
	largest := map[string]int{}

	DescribeTable("is limited in each object",
		func(ctx SpecContext, role, kind string, o client.Object, content []room, documented string) {
			o.SetNamespace(ofTeam)
			bytes := fullest(ctx, asPerson(ctx, role), o, append(content, around()...))
			AddReportEntry(kind, fmt.Sprint(bytes, " bytes"))
			largest[kind] = max(largest[kind], bytes)
			Expect(bytes).To(BeNumerically("<=", documentedSize(documented)), "docs/plans.md documents it, and the budgets depend on it")
		},
		Entry("captions that JSON escapes, to four accounts", "herald-editor", "posts", post("escaped"),
			[]room{{"captions", texts(4, "<")}}, "Post"),
		Entry("captions of four bytes a letter, to four accounts", "herald-editor", "posts", post("emojis"),
			[]room{{"captions", texts(4, "😀")}}, "Post"),
		Entry("control characters", "herald-editor", "posts", post("control"),
			[]room{{"captions", texts(4, "\x01")}}, "Post"),
		Entry("captions to a hundred accounts with long names", "herald-editor", "posts", post("hundred"),
			[]room{{"captions", texts(100, "a")}}, "Post"),
		Entry("a draft of a tree with thousands of files", "herald-editor", "posts", post("tree"),
			[]room{{"mediaRefs", references}}, "Post"),
		Entry("a Media", "herald-editor", "media", &v1alpha1.Media{
			ObjectMeta: metav1.ObjectMeta{Name: "full-media"},
			Spec: v1alpha1.MediaSpec{
				FileName: strings.Repeat("<", 1020) + ".png", MimeType: "image/png",
				Source: &v1alpha1.MediaSource{URL: "https://example.com/" + strings.Repeat("a", 2000)},
			},
		}, nil, "Media"),
		Entry("a PostSchedule", "herald-editor", "postschedules", recurring("full-schedule", func(s *v1alpha1.PostSchedule) {
			s.Spec.Texts, s.Spec.Template.Targets[0].Caption = []string{strings.Repeat("<", 32_768)}, strings.Repeat("<", 32_768)
		}), nil, "PostSchedule"),
		Entry("a Notifier", "herald-admin", "notifiers", &v1alpha1.Notifier{
			ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "full-notifier"},
			Spec: v1alpha1.NotifierSpec{
				Format: v1alpha1.FormatStandardWebhooks, URL: "https://example.com/" + strings.Repeat("a", 2000),
				SecretRef: &v1alpha1.LocalReference{Name: longName(0)}, Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed},
			},
		}, nil, "Notifier"),
		Entry("a Connection", "herald-admin", "connections", connected(ofTeam, func(c *v1alpha1.Connection) {
			c.Name, c.Labels, c.Annotations = "full-connection", nil, nil
			c.Spec.CredentialsSecretRef, c.Spec.AccountID = v1alpha1.LocalReference{Name: longName(0)}, strings.Repeat("a", 128)
		}), nil, "Connection"),
		Entry("an APIKey", "herald-admin", "apikeys", func() client.Object {
			k := key()
			k.Name, k.Spec.Description = "full-key", strings.Repeat("<", 500)
			return k
		}(), nil, "APIKey"),
	)

	It("is within the etcd budget in docs/plans.md, for each plan", func() {
		Expect(largest).To(HaveKey("posts"))
		unlimited := &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{
			Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive,
		}}}
		for name, limits := range map[string]plan.Budget{"starter": plan.BudgetOf(nil), "unlimited": plan.BudgetOf(unlimited)} {
			total := int64(largest["posts"])*limits.Posts + int64(largest["media"])*limits.Files +
				int64(largest["connections"])*limits.Connections + int64(largest["postschedules"])*limits.Schedules +
				int64(largest["notifiers"])*limits.Notifiers + int64(largest["apikeys"])*limits.Keys
			AddReportEntry(name, fmt.Sprint(total>>20, " MiB"))
			Expect(total).To(BeNumerically("<=", documentedBudget(name)), name)
		}
	})
})

// documentedSize returns the size of a kind's largest object according to the table in docs/plans.md, in bytes.
func documentedSize(kind string) int {
	GinkgoHelper()
	return documented(`(?m)^\| `+kind+` \| ([0-9]+) KiB \|`) << 10
}

// documentedBudget returns a plan's budget from docs/plans.md, in bytes.
func documentedBudget(plan string) int64 {
	GinkgoHelper()
	return int64(documented(`(?m)^\| `+plan+` \| ([0-9]+) MiB \|`)) << 20
}

func documented(pattern string) int {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(envtest.Root(), "docs", "plans.md"))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	Expect(found).NotTo(BeNil(), "docs/plans.md has no line like %s", pattern)
	number, err := strconv.Atoi(string(found[1]))
	Expect(err).NotTo(HaveOccurred())
	return number
}
