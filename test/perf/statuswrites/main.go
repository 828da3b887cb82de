// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command statuswrites compares the CPU time that kube-apiserver needs for the status writes of a delivery with several
// versions of the posts CRD, in alternating rounds of one run:
//
//	go run ./test/perf/statuswrites OLD.yaml config/crd/bases/social.herald.dev_posts.yaml
//
// Each file is measured with ordinary posts, and with posts without managedFields, as config/mutation creates them.
// With -watchers, each file is instead measured with one watch of all posts, like an active manager's, and with a
// second one, like a standby's, which watches posts or only their metadata. An API server from KUBEBUILDER_ASSETS
// serves each file under a separate API group.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	nethttp "net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

const (
	posts    = 200
	inFlight = 16
	rounds   = 9
)

func main() {
	ctrl.SetLogger(logr.Discard())
	watchers := flag.Bool("watchers", false, "compare numbers and kinds of watches")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "specify the CRDs to compare: statuswrites [-watchers] FILE...")
		os.Exit(2)
	}
	ways := []way{{name: "as created"}, {name: "without managedFields", untracked: true}}
	if *watchers {
		ways = []way{
			{name: "one watch", watches: []string{objects}},
			{name: "and one of a standby", watches: []string{objects, objects}},
			{name: "and one of a standby, of metadata", watches: []string{objects, metadata}},
		}
	}
	if err := run(context.Background(), flag.Args(), ways); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// way is a way to create and watch posts.
type way struct {
	name      string
	untracked bool
	// watches are the media types of the watches that are open during the measurement.
	watches []string
}

// Media types of watches.
const (
	objects  = "application/json"
	metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// variant is a combination of a CRD version and a way.
type variant struct {
	way

	file, group string
	// millis contains each round's CPU time per status write, and bytes is the size of a finished post.
	millis []float64
	bytes  int
}

func run(ctx context.Context, files []string, ways []way) (err error) {
	env, err := envtest.Start(envtest.Empty()) //nolint:contextcheck // it is stopped below
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	var variants []*variant
	for i, file := range files {
		group := fmt.Sprintf("v%d.herald.dev", i)
		if err := install(env, file, group); err != nil {
			return fmt.Errorf("cannot install %s: %w", file, err)
		}
		for _, w := range ways {
			variants = append(variants, &variant{way: w, file: file, group: group})
		}
	}
	for round := range rounds + 1 { // the first round warms up
		for _, v := range variants {
			if err := v.measure(ctx, env, round); err != nil {
				return fmt.Errorf("%s: %w", v.file, err)
			}
		}
	}
	return report(variants)
}

// install installs a file's CRD under another API group.
func install(env *envtest.Environment, file, group string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return err
	}
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group, group
	_, err = ctrlenvtest.InstallCRDs(env.Config, ctrlenvtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{&crd}})
	return err
}

// measure delivers posts of the variant and records the CPU time of their claims and results.
func (v *variant) measure(ctx context.Context, env *envtest.Environment, round int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k8s := env.Client
	steps, err := deliverySteps()
	if err != nil {
		return err
	}
	created := make([]*unstructured.Unstructured, posts)
	if err := each(func(i int) (err error) {
		created[i], err = v.create(ctx, k8s, steps[0], fmt.Sprintf("post-%d-%d-%s", round, i, strings.NewReplacer(" ", "-", ",", "", "F", "f").Replace(v.name)))
		return err
	}); err != nil {
		return err
	}
	for _, mediaType := range v.watches {
		if err := v.watch(ctx, env, mediaType); err != nil {
			return err
		}
	}
	before, err := kubeAPIServer()
	if err != nil {
		return err
	}
	for _, step := range steps[1:] {
		if err := each(func(i int) error { return writeStatus(ctx, k8s, created[i], step) }); err != nil {
			return err
		}
	}
	after, err := kubeAPIServer()
	if err != nil {
		return err
	}
	if round > 0 {
		v.millis = append(v.millis, (after-before).Seconds()*1000/float64(posts*(len(steps)-1)))
	}
	data, err := created[0].MarshalJSON()
	v.bytes = len(data)
	return err
}

// create creates an accepted post that waits for its scheduled time.
func (v *variant) create(ctx context.Context, k8s client.Client, accepted map[string]any, name string) (*unstructured.Unstructured, error) {
	post := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(post.Object, accepted)
	post = post.DeepCopy()
	post.SetAPIVersion(v.group + "/v1alpha1")
	post.SetName(name)
	delete(post.Object, "status")
	if err := k8s.Create(ctx, post, client.FieldOwner("herald-apiserver")); err != nil {
		return nil, err
	}
	if v.untracked {
		reset := []byte(`{"metadata":{"managedFields":[{}]}}`)
		if err := k8s.Patch(ctx, post, client.RawPatch("application/merge-patch+json", reset)); err != nil {
			return nil, err
		}
	}
	return post, writeStatus(ctx, k8s, post, accepted)
}

// watch opens a watch of the variant's posts and discards the events until ctx is done.
func (v *variant) watch(ctx context.Context, env *envtest.Environment, mediaType string) error {
	http, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		return err
	}
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, env.Config.Host+"/apis/"+v.group+"/v1alpha1/posts?watch=true", nethttp.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", mediaType)
	response, err := http.Do(request) //nolint:bodyclose // closed when ctx is done
	if err != nil {
		return err
	}
	go func() {
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body) // ends with ctx
	}()
	return nil
}

func writeStatus(ctx context.Context, k8s client.Client, post *unstructured.Unstructured, step map[string]any) error {
	post.Object["status"] = step["status"]
	return k8s.Status().Update(ctx, post, client.FieldOwner("herald"))
}

// each runs the work for each post, several posts at a time.
func each(work func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i := range posts {
		group.Go(func() error { return work(i) })
	}
	return group.Wait()
}

// kubeAPIServer returns the CPU time used so far by the kube-apiserver that this process started.
func kubeAPIServer() (time.Duration, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, process := range all {
		stat, err := process.Stat()
		if err == nil && stat.PPID == os.Getpid() && strings.HasPrefix(stat.Comm, "kube-apiserver") {
			return time.Duration(stat.CPUTime() * float64(time.Second)), nil
		}
	}
	return 0, errors.New("this process has no kube-apiserver")
}

func report(variants []*variant) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	lines := []string{"ms of kube-apiserver per status write\trounds\t% of the first\tbytes\tCRD"}
	first := measure.Median(variants[0].millis)
	for _, v := range variants {
		median := measure.Median(v.millis)
		lines = append(lines, fmt.Sprintf("%.1f\t%.1f\t%.0f\t%d\t%s, %s", median, v.millis, 100*median/first, v.bytes, filepath.Base(v.file), v.name))
	}
	if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
		return err
	}
	return w.Flush()
}
