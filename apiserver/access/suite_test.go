// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/test/envtest"
)

func TestAccess(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "access of people by the roles that are installed")
}

var (
	admin client.Client
	// reach is the apiserver's client configuration, with its installed permissions.
	reach *rest.Config
)

// The suite's teams.
const acme, beta = "team-acme", "team-beta"

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	env, err := envtest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin = env.Client
	reach, err = env.Installed(ctx, envtest.APIServerAccount)
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{acme, beta} {
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	for name, who := range map[string]rbacv1.Subject{
		"viewer": {Kind: rbacv1.UserKind, Name: "oidc:vera"},
		"editor": {Kind: rbacv1.GroupKind, Name: "oidc:marketing"},
		"admin":  {Kind: rbacv1.UserKind, Name: access.LinkPerson},
	} {
		bind(ctx, acme, name, who)
	}
})

// bind binds one of Herald's roles to a person or a group in a namespace, as described in docs/people.md.
func bind(ctx context.Context, namespace, role string, who rbacv1.Subject) *rbacv1.RoleBinding {
	GinkgoHelper()
	who.APIGroup = rbacv1.GroupName
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: role + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-" + role},
		Subjects:   []rbacv1.Subject{who},
	}
	Expect(admin.Create(ctx, b)).To(Succeed())
	return b
}

// newChecker returns a Checker whose cache expires by clk.
func newChecker(clk clock.PassiveClock, namespaces ...string) *access.Checker {
	GinkgoHelper()
	reviews, err := kube.NewReviews(reach, "access-test")
	Expect(err).NotTo(HaveOccurred())
	var teams []*v1alpha1.Team
	for _, namespace := range namespaces {
		teams = append(teams, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1alpha1.TeamSpec{Namespace: namespace}})
	}
	return access.New(reviews, func() []*v1alpha1.Team { return teams }, clk)
}

var (
	vera     = access.Person{Name: "oidc:vera"}
	edith    = access.Person{Name: "oidc:edith", Groups: []string{"oidc:everyone", "oidc:marketing"}}
	link     = access.Person{Name: access.LinkPerson}
	stranger = access.Person{Name: "oidc:sam", Groups: []string{"oidc:sales"}}
	unnamed  = access.Person{Name: "marketing", Groups: []string{"marketing"}}
)

var _ = DescribeTable("In a team,", func(ctx SpecContext, who access.Person, verb, resource string, want bool) {
	may := func(namespace string) bool {
		ok, err := newChecker(clock.RealClock{}).May(ctx, who, namespace, verb, resource)
		Expect(err).NotTo(HaveOccurred())
		return ok
	}
	if want {
		// The API server takes a moment to see new roles.
		Eventually(func() bool { return may(acme) }).WithTimeout(10 * time.Second).Should(BeTrue())
	} else {
		Expect(may(acme)).To(BeFalse())
	}
	Expect(may(beta)).To(BeFalse(), "a role in one namespace has no effect in another")
},
	Entry("a viewer lists posts", vera, "list", "posts", true),
	Entry("a viewer reads accounts", vera, "get", "connections", true),
	Entry("a viewer cannot create posts", vera, "create", "posts", false),
	Entry("a viewer cannot cancel posts", vera, "patch", "posts", false),
	Entry("a viewer cannot read keys", vera, "list", "apikeys", false),
	Entry("a group of editors creates posts", edith, "create", "posts", true),
	Entry("a group of editors changes posts", edith, "patch", "posts", true),
	Entry("a group of editors uploads files", edith, "create", "media", true),
	Entry("a group of editors cannot connect accounts", edith, "create", "connections", false),
	Entry("a group of editors cannot create keys", edith, "create", "apikeys", false),
	Entry("the link connects accounts", link, "create", "connections", true),
	Entry("the link disconnects them", link, "delete", "connections", true),
	Entry("the link creates keys", link, "create", "apikeys", true),
	Entry("the link cannot read the team's Secrets through Herald", link, "get", "secrets", false),
	Entry("a user without a role has no permissions", stranger, "list", "posts", false),
	Entry("a name without the prefix does not match a user", unnamed, "list", "posts", false),
	Entry("only administrators change teams", link, "update", "teams", false),
)

var _ = It("A user's teams are those whose posts the user may list", func(ctx SpecContext) {
	teams := func(who access.Person) []string {
		found, err := newChecker(clock.RealClock{}, acme, beta).Teams(ctx, who)
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, team := range found {
			names = append(names, team.Name)
		}
		return names
	}
	Eventually(func() []string { return teams(edith) }).Should(Equal([]string{acme}))
	Expect(teams(stranger)).To(BeEmpty())
	Expect(teams(access.Person{Name: "root", Groups: []string{"system:masters"}})).To(Equal([]string{acme, beta}))
})

var _ = It("A revoked permission has no effect within seconds", func(ctx SpecContext) {
	clk := clocktesting.NewFakeClock(begin)
	checker := newChecker(clk)
	b := bind(ctx, beta, "viewer", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "oidc:tom"})
	may := func() bool {
		clk.Step(6 * time.Second)
		ok, err := checker.May(ctx, access.Person{Name: "oidc:tom"}, beta, "list", "posts")
		Expect(err).NotTo(HaveOccurred())
		return ok
	}
	Eventually(may).Should(BeTrue())
	Expect(admin.Delete(ctx, b)).To(Succeed())
	Eventually(may).Should(BeFalse())
})

var _ = It("An apiserver that may not check permissions denies everything", func(ctx SpecContext) {
	config := rest.CopyConfig(reach)
	config.Impersonate.UserName = "system:serviceaccount:herald-system:default"
	reviews, err := kube.NewReviews(config, "access-test")
	Expect(err).NotTo(HaveOccurred())
	ok, err := access.New(reviews, nil, clock.RealClock{}).May(ctx, link, acme, "list", "posts")
	Expect(ok).To(BeFalse())
	Expect(err).To(MatchError(And(ContainSubstring("herald:link may list posts"), ContainSubstring(acme), ContainSubstring("forbidden"))))
})
