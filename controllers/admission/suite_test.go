// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/admission"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/internal/webhookcert"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission webhook")
}

const (
	system  = "herald-system"
	team    = "team-acme"
	account = "system:serviceaccount:" + system + ":herald-"
)

var (
	// user applies posts, as kubectl does.
	user client.Client
	// apiserver has the account of Herald's REST API.
	apiserver client.Client
	// live has the manager's permissions.
	live     client.Client
	warnings = &collector{}
	address  string
	// asked counts the requests to the webhook.
	asked atomic.Int64
	// serving is the Rotator whose certificate is served.
	serving *webhookcert.Rotator
	config  = filepath.Join("..", "..", "config")
)

// counting counts the requests to a webhook server.
type counting struct{ webhook.Server }

func (c counting) Register(path string, hook http.Handler) {
	c.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		hook.ServeHTTP(w, r)
	}))
}

// collector stores the warnings that a client received.
type collector struct {
	mu   sync.Mutex
	seen []string
}

func (c *collector) HandleWarningHeader(_ int, _, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, message)
}

// drain returns the warnings since the previous call.
func (c *collector) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

var _ = BeforeSuite(func() {
	ctx := context.Background()
	env := suite.Start()

	as := func(name string, edit func(*rest.Config)) (*rest.Config, client.Client) {
		c := rest.CopyConfig(env.Config)
		if name != "" {
			c.Impersonate = rest.ImpersonationConfig{UserName: account + name, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		}
		edit(c)
		return c, suite.Must(client.New(c, client.Options{Scheme: env.Scheme}))
	}
	none := func(*rest.Config) {}
	_, user = as("", func(c *rest.Config) { c.WarningHandler = warnings })
	_, apiserver = as("apiserver", none)
	var managerConfig *rest.Config
	managerConfig, live = as("manager", none)

	address = ports.ForTest(GinkgoT())
	Expect(cluster.ApplyFolders(ctx, env.Client, filepath.Join(config, "rbac"))).To(Succeed())
	Expect(cluster.ApplyWebhook(ctx, env.Client, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+address)).To(Succeed())
	Expect(user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team, Labels: map[string]string{v1alpha1.TeamLabel: "acme"}}})).To(Succeed())
	startManager(ctx, managerConfig, env)
	stock(ctx)
})

// keeper returns a Rotator with the manager's permissions, for the webhook's address and other hosts.
func keeper(secret, webhook string, c clock.Clock, hosts ...string) *webhookcert.Rotator {
	GinkgoHelper()
	return suite.Must(webhookcert.New(webhookcert.Options{
		Reader: live, Writer: live, Secret: types.NamespacedName{Namespace: system, Name: secret},
		Webhook: webhook, Hosts: append([]string{"127.0.0.1"}, hosts...), Path: admission.PostPath, Clock: c,
	}))
}

func startManager(ctx context.Context, c *rest.Config, env *envtest.Environment) {
	GinkgoHelper()
	serving = keeper(secretName, "herald", clock.RealClock{})
	host, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	number := suite.Must(strconv.Atoi(port))
	mgr := suite.Must(ctrl.NewManager(c, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Post{}:        {Field: kubeclient.UnfinishedPosts()},
			&corev1.ResourceQuota{}: {Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.BudgetQuota)},
		}},
		WebhookServer: counting{webhook.NewServer(webhook.Options{Host: host, Port: number, TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.GetCertificate = serving.GetCertificate },
		}})},
	}))
	// One check, and no periodic ones: those would renew the certificates that specs issue at other times.
	Expect(serving.Check(ctx)).To(Succeed())
	outgoing := transport.New(transport.Options{})
	teams := suite.Must(quota.NewTeams(ctx, mgr.GetCache(), mgr.GetFieldIndexer()))
	tally := suite.Must(admission.NewTally(ctx, mgr.GetCache()))
	Expect(admission.SetupWithManager(mgr, admission.Options{
		Budgets: &admission.Budgets{
			Owner: teams.Owner, Unfinished: tally.Unfinished, Quotas: mgr.GetClient(),
			Usage: quota.NewUsageStore(quota.NewAPI(mgr.GetAPIReader(), mgr.GetClient())).Read,
		},
		Reader: mgr.GetClient(), APIReader: mgr.GetAPIReader(), StartingDeadline: time.Hour, Clock: clock.RealClock{}, SecretPath: serving.CallPath,
		Platforms: platforms.Registry{
			v1alpha1.PlatformX: x.New(x.Config{}, outgoing), v1alpha1.PlatformThreads: threads.New(threads.Config{}, outgoing),
			v1alpha1.PlatformInstagram: instagram.New(instagram.Config{}, outgoing), v1alpha1.PlatformFacebook: facebook.New(facebook.Config{}, outgoing),
			v1alpha1.PlatformTikTok: tiktok.New(tiktok.Config{}, outgoing), v1alpha1.PlatformYouTube: youtube.New(youtube.Config{}, outgoing),
		},
	})).To(Succeed())
	suite.Run(mgr) //nolint:contextcheck // it runs until the end of the suite
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
}

// stock creates an account on every platform and files of every kind for the team, and waits until the webhook's cache
// has them.
func stock(ctx context.Context) {
	GinkgoHelper()
	for _, p := range []v1alpha1.Platform{"x", "threads", "instagram", "facebook", "tiktok", "youtube"} {
		connect(ctx, string(p), p)
	}
	private := connect(ctx, "private", v1alpha1.PlatformTikTok)
	private.Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"SELF_ONLY"}}
	Expect(user.Status().Update(ctx, private)).To(Succeed())
	file(ctx, "png", "image/png", 1<<20, v1alpha1.MediaUploaded)
	for _, megabytes := range []int64{5, 6, 8, 9} {
		file(ctx, fmt.Sprintf("png-%dmb", megabytes), "image/png", megabytes<<20, v1alpha1.MediaUploaded)
	}
	file(ctx, "mp4", "video/mp4", 1<<20, v1alpha1.MediaUploaded)
	file(ctx, "mov", "video/quicktime", 1<<20, v1alpha1.MediaUploaded)
	large, hevc := file(ctx, "4k", "video/quicktime", 1<<20, v1alpha1.MediaUploaded), file(ctx, "hevc", "video/quicktime", 1<<20, v1alpha1.MediaUploaded)
	large.Status.Width, large.Status.Height, hevc.Status.VideoCodec = 3840, 2160, "hevc"
	Expect(user.Status().Update(ctx, large)).To(Succeed())
	Expect(user.Status().Update(ctx, hevc)).To(Succeed())
	for _, megabytes := range []int64{512, 600, 1024} {
		file(ctx, fmt.Sprintf("mp4-%dmb", megabytes), "video/mp4", megabytes<<20, v1alpha1.MediaUploaded)
	}
	file(ctx, "rejected", "image/png", 1<<20, v1alpha1.MediaRejected)
	file(ctx, "pending", "image/png", 1<<20, v1alpha1.MediaPending)
	missing := file(ctx, "missing", "image/png", 1<<20, v1alpha1.MediaUploaded)
	conditions.Apply(&missing.Status.Conditions, conditions.Summary{Reason: v1alpha1.ReasonFileMissing, Progress: conditions.Stuck}, 1, time.Now())
	Expect(user.Status().Update(ctx, missing)).To(Succeed())
	leaving := connect(ctx, "leaving", v1alpha1.PlatformX)
	leaving.Finalizers = []string{"example.com/held"}
	Expect(user.Update(ctx, leaving)).To(Succeed())
	Expect(user.Delete(ctx, leaving)).To(Succeed())
	// A dry run calls the webhook without storing the object.
	Eventually(func(g Gomega) {
		g.Expect(user.Create(ctx, post(imageOf("missing"), to("leaving")), client.DryRunAll)).To(Succeed())
		g.Expect(warnings.drain()).To(HaveLen(2))
		probe := post(func(s *v1alpha1.PostSpec) { s.Targets[0].ConnectionRef.Name = "private" }, imageOf("rejected"))
		err := user.Create(ctx, probe, client.DryRunAll)
		g.Expect(err).To(MatchError(And(ContainSubstring("was rejected"), ContainSubstring("SELF_ONLY"))))
		g.Expect(warnings.drain()).To(BeEmpty())
	}).Should(Succeed())
}

func connect(ctx context.Context, name string, platform v1alpha1.Platform) *v1alpha1.Connection {
	GinkgoHelper()
	c := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name},
		Spec: v1alpha1.ConnectionSpec{
			Platform: platform, AccountID: "account-" + name, CredentialsSecretRef: v1alpha1.LocalReference{Name: name},
		},
	}
	Expect(user.Create(ctx, c)).To(Succeed())
	return c
}

func file(ctx context.Context, name string, mimeType v1alpha1.MimeType, size int64, phase v1alpha1.MediaPhase) *v1alpha1.Media {
	GinkgoHelper()
	m := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: name, MimeType: mimeType, SizeBytes: size},
	}
	Expect(user.Create(ctx, m)).To(Succeed())
	m.Status = v1alpha1.MediaStatus{Phase: phase, SizeBytes: size}
	if phase == v1alpha1.MediaUploaded {
		m.Status.ETag, m.Status.Width, m.Status.Height, m.Status.DurationMillis = "e", 720, 1280, 120_000 // every platform accepts such a video
	}
	Expect(user.Status().Update(ctx, m)).To(Succeed())
	return m
}
