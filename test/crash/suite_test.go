// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash_test kills the manager, as kill -9 does, at named points of
// the delivery protocol and at random, and lets the sandbox's count and the
// API server's state say what became of the posts. LONG=1 makes it long.
package crash_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/mediastore"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
)

func TestCrash(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Crash matrix")
}

const repository = "../.."

var (
	long     = os.Getenv("LONG") != ""
	folder   string
	binary   string
	k8s      client.Client
	platform sandboxtest.Client
	serial   atomic.Int64
	// toKubernetes and toPlatform stand between every manager and the rest.
	toKubernetes, toPlatform *proxy
	points                   *hook
	files                    mediastore.Config
)

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	Expect(os.Getenv("KUBEBUILDER_ASSETS")).NotTo(BeEmpty(), "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver; `make test-crash` does")
	folder = GinkgoT().TempDir()
	binary = filepath.Join(folder, "herald")
	out, err := exec.Command("go", "build", "-tags", "crashpoints", "-o", binary, repository+"/cmd/herald").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	scheme := runtime.NewScheme()
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(repository, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	k8s, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	toKubernetes, err = newProxy(config.Host[strings.LastIndex(config.Host, "/")+1:])
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(toKubernetes.close)
	kubeconfig := strings.Replace(string(env.KubeConfig), toKubernetes.target, toKubernetes.address(), 1)
	Expect(kubeconfig).To(ContainSubstring(toKubernetes.address()))
	Expect(os.WriteFile(filepath.Join(folder, "kubeconfig"), []byte(kubeconfig), 0o600)).To(Succeed())
	points = newHook()
	DeferCleanup(points.close)
	Expect(k8s.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "herald-system"}})).To(Succeed())

	startSandbox()
	files = storetest.Start(GinkgoT())
	credentials := fmt.Sprintf(`{"accessKey":%q,"secretKey":%q}`, files.AccessKey, files.SecretKey)
	Expect(os.WriteFile(filepath.Join(folder, "store-key.json"), []byte(credentials), 0o600)).To(Succeed())
})

func startSandbox() {
	address := freeAddress()
	platform = sandboxtest.Client{URL: "http://" + address}
	server := start("sandbox", nil, "sandbox", "--listen", address, "--state-dir", filepath.Join(folder, "sandbox"))
	DeferCleanup(func() { server.kill() })
	Eventually(func() error {
		resp, err := http.Get(platform.URL + "/_control/calls")
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}).Should(Succeed())
	var err error
	toPlatform, err = newProxy(address)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(toPlatform.close)
	config := ""
	for _, name := range publishers {
		config += fmt.Sprintf("%[1]s: {apiURL: http://%[2]s/%[1]s, webURL: %[3]s/%[1]s, clientID: crash, listingLag: 2s}\n", name, toPlatform.address(), platform.URL)
	}
	Expect(os.WriteFile(filepath.Join(folder, "platforms.yaml"), []byte(config), 0o600)).To(Succeed())
}

func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(l.Close()).To(Succeed())
	return l.Addr().String()
}

// process is a child of the test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs the herald binary with its log in the test's folder.
func start(name string, environment []string, args ...string) *process {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	p := &process{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(p.cmd.Start()).To(Succeed())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
		_ = log.Close()
	}()
	return p
}

// startManager starts a manager. The leader's name is stable, so that the next
// one works at once; what keeps them apart is the claim.
func startManager(flags ...string) *process {
	args := append([]string{
		"manager", "--kubeconfig", filepath.Join(folder, "kubeconfig"), "--platforms-config", filepath.Join(folder, "platforms.yaml"),
		"--media-endpoint", "http://" + files.Endpoint, "--media-bucket", files.Bucket, "--media-path-style",
		"--media-credentials", filepath.Join(folder, "store-key.json"),
		"--leader-identity", "crash", "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--webhook-bind-address", "0",
	}, flags...)
	return start("manager", []string{"HERALD_CRASH_HOOK=" + points.url()}, args...)
}

// hook is told by a manager that it has reached a point of the protocol, and
// makes it wait while the test acts.
type hook struct {
	server *httptest.Server
	mu     sync.Mutex
	point  string
	act    func()
}

func newHook() *hook {
	h := &hook{}
	h.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		act := h.act
		if act == nil || r.URL.Path != "/"+h.point {
			act = func() {}
		} else {
			h.act = nil
		}
		h.mu.Unlock()
		act()
	}))
	return h
}

func (h *hook) url() string { return h.server.URL }
func (h *hook) close()      { h.server.Close() }

// once arranges that act runs when a manager reaches the point for the first
// time from now; done is closed after it.
func (h *hook) once(point string, act func()) (done chan struct{}) {
	done = make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.point, h.act = point, func() {
		defer close(done)
		act()
	}
	return done
}

// kill ends a process as kill -9 does and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// publishers are the platforms that a text post can go to.
var publishers = []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook}

// team is a team with an account connected on each platform, made as a
// platform team makes it.
type team struct {
	namespace string
	accounts  map[v1alpha1.Platform]sandboxtest.Account
}

// newTeam needs a manager that runs.
func newTeam(ctx context.Context) team {
	t := team{namespace: fmt.Sprintf("crash-%d", serial.Add(1)), accounts: map[v1alpha1.Platform]sandboxtest.Account{}}
	Expect(k8s.Create(ctx, &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: t.namespace}, Spec: v1alpha1.TeamSpec{Namespace: t.namespace},
	})).To(Succeed())
	for _, name := range publishers {
		t.accounts[name] = t.connect(ctx, name)
	}
	return t
}

func (t team) connect(ctx context.Context, name v1alpha1.Platform) sandboxtest.Account {
	// Listings lag, as real ones do; the publishers are told of 2 s.
	account, err := platform.Account(ctx, string(name), fmt.Sprintf("18%08d", serial.Add(1)), map[string]any{"listing_lag_ms": 1500})
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: string(name), Namespace: t.namespace},
		StringData: map[string]string{
			v1alpha1.CredentialsAccessToken:  account.AccessToken,
			v1alpha1.CredentialsRefreshToken: account.RefreshToken,
		},
	}
	if !account.ExpiresAt.IsZero() {
		secret.StringData[v1alpha1.CredentialsExpiresAt] = account.ExpiresAt.Format(time.RFC3339)
	}
	Eventually(func() error { return k8s.Create(ctx, secret.DeepCopy()) }).Should(Succeed(), "the manager makes the namespace")
	conn := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: string(name), Namespace: t.namespace},
		Spec: v1alpha1.ConnectionSpec{
			Platform: name, AccountID: account.ID, CredentialsSecretRef: v1alpha1.LocalReference{Name: string(name)},
		},
	}
	Expect(k8s.Create(ctx, conn)).To(Succeed())
	Eventually(func() bool {
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(conn), conn)).To(Succeed())
		return meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionReady)
	}).Should(BeTrue(), "the manager probes the connection to %s", name)
	return account
}

// post makes a post for some platforms.
func (t team) post(ctx context.Context, text string, to ...v1alpha1.Platform) *v1alpha1.Post {
	return t.apply(ctx, func(p *v1alpha1.Post) {
		for i := range p.Spec.Targets {
			p.Spec.Targets[i].Caption = text
		}
	}, to...)
}

// apply makes a post for some platforms with what fill puts into it.
func (t team) apply(ctx context.Context, fill func(*v1alpha1.Post), to ...v1alpha1.Platform) *v1alpha1.Post {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", serial.Add(1)), Namespace: t.namespace, Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText},
	}
	for _, platform := range to {
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: string(platform)},
		})
	}
	fill(p)
	Expect(k8s.Create(ctx, p)).To(Succeed())
	return p
}

// times counts how often the words of a target were published by its account.
func (t team) times(ctx context.Context, target v1alpha1.PostTarget) int {
	on := v1alpha1.Platform(target.ConnectionRef.Name)
	posts, err := platform.Posts(ctx, string(on), t.accounts[on].ID)
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, p := range posts {
		if p.Text == target.Caption {
			n++
		}
	}
	return n
}

func read(ctx context.Context, p *v1alpha1.Post) *v1alpha1.Post {
	var now v1alpha1.Post
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p), &now)).To(Succeed())
	return &now
}
