// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory_test stores all the large posts that a team can create in a minute, and measures the memory of a
// process that reads or caches them: live bytes and peak resident memory. It does not measure time.
package memory_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/must"
)

// Environment variables with a child process's measurement and its output file.
const (
	modeVariable   = "HERALD_MEMORY_MODE"
	configVariable = "HERALD_MEMORY_KUBECONFIG"
	// olderVariable, set to 1, also measures posts and code of the previous version.
	olderVariable = "HERALD_MEMORY_OLDER"
)

const stored = 500

// sizes are the posts to store: the largest that is admitted now, and the largest from an earlier version that the
// schema still accepts.
var sizes = map[string]func(i int) *v1alpha1.Post{
	"largest": func(i int) *v1alpha1.Post {
		post := draft(i)
		for range 4 {
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: "acme-page"}, Caption: strings.Repeat("a", 64_000),
			})
		}
		left := posting.MaxPost - posting.Of(post).Size()
		post.Spec.Targets[0].Caption += strings.Repeat("a", min(left, 1_500))
		return post
	},
	"older": func(i int) *v1alpha1.Post {
		post := draft(i)
		for range 3 {
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: "acme-page"}, Caption: strings.Repeat("🙂", 65_000),
			})
		}
		return post
	},
}

func draft(i int) *v1alpha1.Post {
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("draft-%03d", i)},
		Spec:       v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Draft: true},
	}
}

// measured is the result of a child process.
type measured struct{ aliveMiB, peakMiB float64 }

// modes are the measurements of the child processes, each with a limit.
var modes = []struct {
	name  string
	do    func(ctx context.Context, config *rest.Config) (any, error)
	bound measured
	// older marks an earlier version's behavior, for comparison.
	older bool
}{
	{name: "the manager's cache", do: cacheAll(kubeclient.TransformForCache), bound: measured{24, 128}},
	{name: "one list of all posts, as in the sweep and the lookup", do: readAll, bound: measured{24, 128}},
	{name: "the apiserver's feed", do: feedAll, bound: measured{24, 128}},
	{name: "before: the manager's cache", do: cacheAll(nil), older: true},
	{name: "before: one page of 500", do: pageOf500, older: true},
}

func cacheAll(transform func(any) (any, error)) func(context.Context, *rest.Config) (any, error) {
	return func(ctx context.Context, config *rest.Config) (any, error) {
		posts := cache.ByObject{Field: kubeclient.UnfinishedPosts(), Transform: transform}
		all, err := cache.New(config, cache.Options{Scheme: scheme(), ByObject: map[client.Object]cache.ByObject{&v1alpha1.Post{}: posts}})
		if err != nil {
			return nil, err
		}
		go func() { _ = all.Start(ctx) }()
		if _, err := all.GetInformer(ctx, &v1alpha1.Post{}); err != nil {
			return nil, err
		}
		all.WaitForCacheSync(ctx)
		var list v1alpha1.PostList
		if err := all.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil || len(list.Items) != stored {
			return nil, fmt.Errorf("%d posts, %w", len(list.Items), err)
		}
		return all, nil
	}
}

func readAll(ctx context.Context, config *rest.Config) (any, error) {
	config.Wrap(kubeclient.WrapTransport)
	reader, err := client.New(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, err
	}
	seen := 0
	err = kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
		var list v1alpha1.PostList
		if err := reader.List(ctx, &list, client.Limit(page.Limit), client.Continue(page.Continue)); err != nil {
			return "", err
		}
		seen += len(list.Items)
		return list.Continue, nil
	})
	if err == nil && seen != stored {
		err = fmt.Errorf("%d posts", seen)
	}
	return nil, err
}

func pageOf500(ctx context.Context, config *rest.Config) (any, error) {
	reader, err := client.New(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, err
	}
	var list v1alpha1.PostList
	return nil, reader.List(ctx, &list, client.Limit(500))
}

func feedAll(ctx context.Context, config *rest.Config) (any, error) {
	reader, err := kube.NewClient(config, "memory")
	if err != nil {
		return nil, err
	}
	index := postindex.New()
	feed := kube.NewPostFeed(reader, nil, index, func(p *v1alpha1.Post) postindex.Summary {
		return postindex.Summary{
			ID: p.Name, Status: v1alpha1.PhaseDraft, Category: p.Spec.Category, DisplayAt: p.CreationTimestamp.Time,
			Title: posting.Of(p).Title(func(int) v1alpha1.Platform { return v1alpha1.PlatformFacebook }),
		}
	})
	go feed.Run(ctx)
	<-feed.Synced()
	if index.Len() != stored {
		return nil, fmt.Errorf("%d posts", index.Len())
	}
	return index, nil
}

func scheme() *kruntime.Scheme {
	s := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		panic(err) // the types are this program's own
	}
	return s
}

// TestChild is the entry point of the child processes.
func TestChild(t *testing.T) {
	mode, err := strconv.Atoi(os.Getenv(modeVariable))
	if err != nil {
		t.Skip("TestMemory runs this test in separate processes")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(configVariable))
	must.Succeed(t, err)
	config.QPS = -1
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	kept, err := modes[mode].do(ctx, config)
	must.Succeed(t, err)
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("\nalive %d\npeak %d\n", m.HeapAlloc, peak(t))
	runtime.KeepAlive(kept)
}

// peak returns the peak resident memory of this process, in bytes.
func peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("the system does not report the peak memory: ", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			must.Succeed(t, err)
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

func TestMemory(t *testing.T) {
	if os.Getenv(modeVariable) != "" {
		t.Skip("the process is a child")
	}
	for name, of := range sizes {
		t.Run(name, func(t *testing.T) {
			if name == "older" && os.Getenv(olderVariable) == "" {
				t.Skip("takes some minutes: set " + olderVariable + "=1")
			}
			env, err := envtest.Start()
			must.Succeed(t, err)
			defer func() {
				if err := env.Stop(); err != nil {
					t.Error(err)
				}
			}()
			var making errgroup.Group
			making.SetLimit(4)
			for i := range stored {
				making.Go(func() error { return env.Client.Create(t.Context(), of(i)) })
			}
			must.Succeed(t, making.Wait())
			config := write(t, env.Config)
			for i, mode := range modes {
				if mode.older && os.Getenv(olderVariable) == "" {
					continue
				}
				got := child(t, i, config)
				t.Logf("%s, 500 posts of %d KiB: %.0f MiB alive, %.0f MiB at the most", mode.name, posting.Of(of(0)).Size()>>10, got.aliveMiB, got.peakMiB)
				if !mode.older && (got.aliveMiB > mode.bound.aliveMiB || got.peakMiB > mode.bound.peakMiB) {
					t.Errorf("%s: more than %.0f MiB alive, %.0f at the most", mode.name, mode.bound.aliveMiB, mode.bound.peakMiB)
				}
			}
		})
	}
}

// write writes a kubeconfig for the cluster and returns its path.
func write(t *testing.T, config *rest.Config) string {
	t.Helper()
	out := clientcmdapi.NewConfig()
	out.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	out.CurrentContext = "x"
	if !strings.HasPrefix(config.Host, "http") {
		out.Clusters["c"].Server = "https://" + config.Host
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, clientcmd.WriteToFile(*out, path))
	return path
}

// child measures a mode in a separate process.
func child(t *testing.T, mode int, config string) (got measured) {
	t.Helper()
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	run.Env = append(os.Environ(), modeVariable+"="+strconv.Itoa(mode), configVariable+"="+config)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", modes[mode].name, err, out)
	}
	values := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			if bytes, err := strconv.ParseInt(value, 10, 64); err == nil {
				values[name] = float64(bytes) / (1 << 20)
			}
		}
	}
	if values["peak"] == 0 {
		t.Fatalf("%s did not report its memory:\n%s", modes[mode].name, out)
	}
	return measured{values["alive"], values["peak"]}
}
