// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package flux_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repository serves archives, as source-controller does for the sources it has fetched.
type repository struct {
	url string

	mu       sync.Mutex
	archives map[string][]byte
}

func serveRepository() *repository {
	r := &repository{archives: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		data, ok := r.archives[request.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, request)
			return
		}
		_, _ = w.Write(data) // the client may have closed the connection
	}))
	DeferCleanup(server.Close)
	r.url = server.URL
	return r
}

// pack creates an archive of files and returns its path and digest.
func (r *repository) pack(files map[string]string) (path, digest string, size int) {
	GinkgoHelper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		Expect(archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))})).To(Succeed())
		Expect(archive.Write([]byte(files[name]))).Error().NotTo(HaveOccurred())
	}
	Expect(archive.Close()).To(Succeed())
	Expect(zipped.Close()).To(Succeed())
	digest = fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))
	path = "/" + digest + ".tar.gz"
	r.mu.Lock()
	defer r.mu.Unlock()
	r.archives[path] = b.Bytes()
	return path, digest, b.Len()
}

var (
	gitRepositories = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
	kustomizations  = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
)

// kustomization is a GitRepository and the Kustomization that applies it.
type kustomization struct {
	name   string
	pushes int
}

// newSync creates a GitRepository and a Kustomization that waits and prunes, with more fields in its spec.
func newSync(ctx context.Context, name string, spec map[string]any) *kustomization {
	GinkgoHelper()
	s := &kustomization{name: name}
	source := object(gitRepositories, name)
	source.Object["spec"] = map[string]any{"interval": "1h", "url": "https://git.invalid/" + name}
	Expect(admin.Create(ctx, source)).To(Succeed())
	k := object(kustomizations, name)
	fields := map[string]any{
		"interval": "1h", "retryInterval": "1s", "timeout": "30s", "prune": true, "wait": true, "path": "./",
		"sourceRef": map[string]any{"kind": "GitRepository", "name": name},
	}
	maps.Copy(fields, spec)
	k.Object["spec"] = fields
	Expect(admin.Create(ctx, k)).To(Succeed())
	return s
}

func object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(system)
	o.SetName(name)
	return o
}

// push publishes a revision and returns its name.
func (s *kustomization) push(ctx context.Context, files map[string]string) (revision string) {
	GinkgoHelper()
	path, digest, size := git.pack(files)
	s.pushes++
	revision = fmt.Sprintf("main@sha1:%040d", s.pushes)
	Eventually(func() error {
		source := object(gitRepositories, s.name)
		if err := admin.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return err
		}
		source.Object["status"] = map[string]any{
			"observedGeneration": source.GetGeneration(),
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
				"observedGeneration": source.GetGeneration(),
			}},
			"artifact": map[string]any{
				"path": path[1:], "url": git.url + path, "revision": revision, "digest": "sha256:" + digest, "size": int64(size),
				"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
			},
		}
		return admin.Status().Update(ctx, source)
	}).Should(Succeed())
	return revision
}

// state is the status of a Kustomization.
type state struct {
	Ready, Reason, Message, Applied, Attempted string
}

func (s *kustomization) state(ctx context.Context) state {
	k := object(kustomizations, s.name)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(k), k)).To(Succeed())
	var found state
	found.Applied, _, _ = unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
	found.Attempted, _, _ = unstructured.NestedString(k.Object, "status", "lastAttemptedRevision")
	conditions, _, _ := unstructured.NestedSlice(k.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Ready" {
			found.Ready, _ = condition["status"].(string)
			found.Reason, _ = condition["reason"].(string)
			found.Message, _ = condition["message"].(string)
		}
	}
	return found
}

// expectReady waits until a revision is applied and all its objects are ready.
func (s *kustomization) expectReady(ctx context.Context, revision string) {
	GinkgoHelper()
	Eventually(func() state { return s.state(ctx) }).Should(And(HaveField("Ready", "True"), HaveField("Applied", revision)), "Kustomization %s", s.name)
}

// reconcile requests another reconciliation of the current revision, and waits until it is done.
func (s *kustomization) reconcile(ctx context.Context) {
	GinkgoHelper()
	at := time.Now().UTC().Format(time.RFC3339Nano)
	k := object(kustomizations, s.name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, at)
	Expect(admin.Patch(ctx, k, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(k), k)).To(Succeed())
		handled, _, _ := unstructured.NestedString(k.Object, "status", "lastHandledReconcileAt")
		g.Expect(handled).To(Equal(at))
	}).Should(Succeed())
}
