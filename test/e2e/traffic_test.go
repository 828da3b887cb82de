// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/mediatest"
)

// traffic are the posts created by a pod through the REST API.
type traffic struct {
	marker string
	posts  int
	pod    *corev1.Pod
}

// accepted is the client's output for a post.
type accepted struct {
	ID     string    `json:"id"`
	Marker string    `json:"marker"`
	Tries  int       `json:"tries"`
	Due    time.Time `json:"due"`
}

// files creates the files and the key for the client's pod.
func files(ctx context.Context) {
	GinkgoHelper()
	picture, err := mediatest.Picture(color.RGBA{R: 200, A: 255})
	Expect(err).NotTo(HaveOccurred())
	film, err := mediatest.Film(repository)
	Expect(err).NotTo(HaveOccurred())
	var key corev1.Secret
	Expect(k8s.Get(ctx, types.NamespacedName{Namespace: demo, Name: "demo-token"}, &key)).To(Succeed())
	at := metav1.ObjectMeta{Namespace: clients, Name: "client"}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: at, BinaryData: map[string][]byte{"picture.jpg": picture, "film.mp4": film}},
		&corev1.Secret{ObjectMeta: at, Data: map[string][]byte{"token": key.Data["token"]}},
	} {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, object.DeepCopyObject().(client.Object)))).To(Succeed())
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
}

// send starts a pod that creates posts.
func send(ctx context.Context, marker string, posts int, over, ahead time.Duration) *traffic {
	GinkgoHelper()
	image := "ghcr.io/herald-social/" + helper + ":" + tag
	if registry != "" {
		image = registry + "/" + helper + ":" + tag
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: clients, GenerateName: "client-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Args: []string{
					"--url=http://" + release + "-apiserver." + home + ".svc/api/v1", "--token-file=/key/token", "--store=" + release + "-store." + home + ".svc:9000",
					"--picture=/files/picture.jpg", "--film=/files/film.mp4", "--marker=" + marker,
					fmt.Sprintf("--posts=%d", posts), "--over=" + over.String(), "--ahead=" + ahead.String(),
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: "/files"}, {Name: "key", MountPath: "/key"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "client"}}}},
				{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "client"}}},
			},
		},
	}
	Expect(k8s.Create(ctx, pod)).To(Succeed())
	return &traffic{marker: marker, posts: posts, pod: pod}
}

// running reports whether the client still creates posts.
func (t *traffic) running(ctx context.Context) bool {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(t.pod), t.pod)).To(Succeed())
	return t.pod.Status.Phase == corev1.PodPending || t.pod.Status.Phase == corev1.PodRunning
}

// all waits for the client and returns the accepted posts.
func (t *traffic) all(ctx context.Context) (out []accepted) {
	GinkgoHelper()
	Eventually(t.running).WithContext(ctx).WithTimeout(10 * time.Minute).Should(BeFalse())
	log, err := typed.CoreV1().Pods(clients).GetLogs(t.pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	lines := bufio.NewScanner(strings.NewReader(string(log)))
	for lines.Scan() {
		var post accepted
		if json.Unmarshal(lines.Bytes(), &post) == nil {
			out = append(out, post)
		}
	}
	Expect(t.pod.Status.Phase).To(Equal(corev1.PodSucceeded), "the client's log ends: %s", log[max(0, len(log)-2000):])
	return out
}

// verdict counts post outcomes.
type verdict struct {
	posts, targets, tries, twice, lost, givenUp int
	// askable counts the targets given up on platforms whose lookup can settle an outcome, and unseen those given up
	// and unpublished.
	askable, unseen int
	// after are the publication delays, by category and platform.
	after map[string][]time.Duration
}

func (v *verdict) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d posts, %d targets, %d requests: %d published twice, %d lost, %d given up, of which %d are not out; "+
		"late by (half, 99 of 100, all)", v.posts, v.targets, v.tries, v.twice, v.lost, v.givenUp, v.unseen)
	for _, kind := range slices.Sorted(maps.Keys(v.after)) {
		late := slices.Sorted(slices.Values(v.after[kind]))
		at := func(share float64) time.Duration {
			return late[min(len(late)-1, int(share*float64(len(late))))].Round(time.Millisecond)
		}
		fmt.Fprintf(&out, "\n    %-20s %5d targets %9s %9s %9s", kind, len(late), at(0.5), at(0.99), at(1))
	}
	return out.String()
}

// settled waits until the posts are settled, and compares them with the platforms.
func (t *traffic) settled(ctx context.Context) *verdict {
	GinkgoHelper()
	sent := t.all(ctx)
	stored := map[string]v1alpha1.Post{}
	Eventually(func(g Gomega) {
		var list v1alpha1.PostList
		g.Expect(k8s.List(ctx, &list, client.InNamespace(demo))).To(Succeed())
		var waiting []string
		for _, post := range list.Items {
			stored[post.Name] = post
			if post.Status.Phase != v1alpha1.PhasePosted && post.Status.Phase != v1alpha1.PhaseFailed {
				waiting = append(waiting, post.Name)
			}
		}
		g.Expect(waiting).To(BeEmpty(), "posts that are not finished")
	}).WithContext(ctx).WithTimeout(10 * time.Minute).Should(Succeed())
	shown := t.shown(ctx)
	v := &verdict{after: map[string][]time.Duration{}}
	for _, post := range sent {
		v.posts++
		v.tries += post.Tries
		object, ok := stored[post.ID]
		if !ok {
			v.lost++
			GinkgoWriter.Printf("lost: %s (%s) was accepted and is not in the cluster\n", post.ID, post.Marker)
			continue
		}
		v.compare(&object, post, shown)
	}
	return v
}

// place identifies a caption on a platform.
type place struct{ platform, text string }

// shown returns the publication times of this traffic's captions, by place.
func (t *traffic) shown(ctx context.Context) map[place][]time.Time {
	GinkgoHelper()
	var connections v1alpha1.ConnectionList
	Expect(k8s.List(ctx, &connections, client.InNamespace(demo))).To(Succeed())
	sandbox, out := platforms(ctx), map[place][]time.Time{}
	for i := range connections.Items {
		on := string(connections.Items[i].Spec.Platform)
		posts, err := sandbox.Posts(ctx, on, connections.Items[i].Spec.AccountID)
		Expect(err).NotTo(HaveOccurred())
		for _, post := range posts {
			if strings.HasPrefix(post.Text, t.marker+" ") {
				at := place{on, post.Text}
				out[at] = append(out[at], post.CreatedAt)
			}
		}
	}
	return out
}

// compare compares one post with the platforms.
func (v *verdict) compare(post *v1alpha1.Post, sent accepted, shown map[place][]time.Time) {
	for i := range post.Status.Targets {
		target := &post.Status.Targets[i]
		texts := []string{sent.Marker}
		if tree := post.Spec.Tree; tree != nil {
			texts = nil
			for _, card := range tree.Cards {
				texts = append(texts, card.Caption)
			}
		}
		v.targets++
		missing := false
		for n, text := range texts {
			times := shown[place{string(target.Platform), text}]
			switch {
			case len(times) == 0:
				missing = true
			case len(times) > 1:
				v.twice++
				GinkgoWriter.Printf("twice: %q on %s at %v\n", text, target.Platform, times)
			case n == 0:
				kind := string(post.Spec.Category) + " on " + string(target.Platform)
				v.after[kind] = append(v.after[kind], times[0].Sub(sent.Due))
			}
		}
		switch {
		case target.Reason == v1alpha1.ReasonOutcomeUnknown:
			v.givenUp++
			if missing {
				v.unseen++
			}
			if target.Platform != v1alpha1.PlatformFacebook && target.Platform != v1alpha1.PlatformTikTok {
				v.askable++
			}
		case missing || target.Phase != v1alpha1.PhasePosted:
			v.lost++
			GinkgoWriter.Printf("lost: %s on %s: %s %q\n", post.Name, target.Platform, target.Reason, target.Message)
		}
	}
	if len(post.Status.Targets) != len(post.Spec.Targets) {
		v.lost++
		GinkgoWriter.Printf("lost: %s has %d targets of %d\n", post.Name, len(post.Status.Targets), len(post.Spec.Targets))
	}
}

// expectWhole expects that no post was lost or published twice.
func expectWhole(v *verdict, posts int) {
	GinkgoHelper()
	Expect(v.posts).To(Equal(posts), "posts that were accepted")
	Expect(v.twice).To(BeZero(), "published twice")
	Expect(v.lost).To(BeZero(), "lost")
}
