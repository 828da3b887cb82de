// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/sandboxtest"
)

// team is a team with a connected account on each platform, created as a platform team would.
type team struct {
	namespace string
	accounts  map[v1alpha1.Platform]sandboxtest.Account
	// hashes are its files' hashes, by name.
	hashes map[string]string

	mu    sync.Mutex
	posts []*sent
	// drafts counts the posts to its inbox.
	drafts atomic.Int32
}

// draftsAtMost limits an account's drafts: an inbox accepts five a day, and a draft that is sent again counts until
// TikTok gives up the first one.
const draftsAtMost = 4

// sent is a team's post.
type sent struct {
	*v1alpha1.Post
	kind *kind
	// cancelled is true if the cancellation was accepted.
	cancelled bool
}

// mimeTypes are the types of a team's files.
var mimeTypes = map[string]v1alpha1.MimeType{
	"red": v1alpha1.MimeJPEG, "blue": v1alpha1.MimeJPEG, "film": v1alpha1.MimeMP4, "long": v1alpha1.MimeMP4,
}

// inParts is the size of a video that every platform receives in several parts: X accepts parts of 4 MiB, TikTok of 5
// MB.
const inParts = 11 << 20

// newTeam creates a team with files. It needs a running manager.
func newTeam(ctx context.Context) *team {
	t := newTeamOn(ctx, connected()...)
	for name := range mimeTypes {
		t.upload(ctx, name)
	}
	for _, name := range connected() {
		t.probed(ctx, name)
	}
	for name := range mimeTypes {
		t.verified(ctx, name)
	}
	return t
}

// verified waits until a manager has verified a file.
func (t *team) verified(ctx context.Context, name string) {
	Eventually(func(g Gomega) {
		var media v1alpha1.Media
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: name}, &media)).To(Succeed())
		g.Expect(media.Status.Phase).To(Equal(v1alpha1.MediaUploaded), "%+v", media.Status)
	}).Should(Succeed(), "the manager verifies %s", name)
}

// newTeamOn creates a team without files, with accounts on some platforms.
func newTeamOn(ctx context.Context, platforms ...v1alpha1.Platform) *team {
	return newTeamIn(ctx, "", platforms...)
}

// newTeamIn is like newTeamOn, for a team of a given shard, unless the leader assigns another one first.
func newTeamIn(ctx context.Context, shard string, platforms ...v1alpha1.Platform) *team {
	t := &team{
		namespace: fmt.Sprintf("crash-%d", serial.Add(1)),
		accounts:  map[v1alpha1.Platform]sandboxtest.Account{}, hashes: map[string]string{},
	}
	of := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}, Spec: v1alpha1.TeamSpec{Namespace: t.namespace}}
	create(ctx, of)
	if of.Status.Shard = shard; shard != "" {
		// A conflict means that the leader was faster.
		if err := k8s.Status().Update(ctx, of); !apierrors.IsConflict(err) {
			Expect(err).NotTo(HaveOccurred())
		}
	}
	for _, name := range platforms {
		t.connect(ctx, name)
	}
	return t
}

// create creates an object, even if the response is lost.
func create(ctx context.Context, object client.Object) {
	Eventually(func() error {
		err := k8s.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			return k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
		}
		return err
	}).Should(Succeed())
}

func (t *team) connect(ctx context.Context, name v1alpha1.Platform) {
	// Listings lag as real ones do; the publishers are configured for 2 s. The quotas are large enough.
	account, err := platform.Account(ctx, string(name), newAccountID(name, serial.Add(1)), map[string]any{
		"listing_lag_ms": 1500, "processing_ms": 300, "quota": 1000000,
	})
	Expect(err).NotTo(HaveOccurred())
	t.connectTo(ctx, name, account)
}

// connectTo connects an account, which another team may have connected, too.
func (t *team) connectTo(ctx context.Context, name v1alpha1.Platform, account sandboxtest.Account) {
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
	create(ctx, secret)
	connection := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: string(name), Namespace: t.namespace},
		Spec: v1alpha1.ConnectionSpec{
			Platform: name, AccountID: accountID(name, account), CredentialsSecretRef: v1alpha1.LocalReference{Name: string(name)},
		},
	}
	if name == v1alpha1.PlatformMastodon {
		connection.Spec.Server = "https://" + mastodonHost
	}
	create(ctx, connection)
	t.accounts[name] = account
}

// newAccountID returns the sandbox's id for the n-th account, in the platform's form.
func newAccountID(on v1alpha1.Platform, n int64) string {
	if on != v1alpha1.PlatformBluesky {
		return fmt.Sprintf("18%08d", n)
	}
	const digits = 24 // each of them from 2 to 7, or a letter
	number := strings.NewReplacer("0", "a", "1", "b").Replace(strconv.FormatInt(n, 8))
	return "did:plc:" + strings.Repeat("a", digits-len(number)) + number
}

// mastodonHost is the server name in Mastodon accounts. Requests go to the sandbox instead.
const mastodonHost = "mastodon.example"

// accountID returns a sandbox account's id as a Connection contains it.
func accountID(on v1alpha1.Platform, account sandboxtest.Account) string {
	if on == v1alpha1.PlatformMastodon {
		return account.ID + "@" + mastodonHost
	}
	return account.ID
}

// probed waits until a manager has probed the connection to a platform.
func (t *team) probed(ctx context.Context, name v1alpha1.Platform) {
	Eventually(func(g Gomega) {
		var conn v1alpha1.Connection
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: string(name)}, &conn)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", conn.Status)
	}).Should(Succeed(), "the manager probes the connection to %s", name)
}

// upload stores a file of the team.
func (t *team) upload(ctx context.Context, name string) {
	data := content(name)
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace},
		Spec:       v1alpha1.MediaSpec{FileName: name, MimeType: mimeTypes[name], SizeBytes: int64(len(data))},
	}
	create(ctx, media)
	bucket, err := store.New(files)
	Expect(err).NotTo(HaveOccurred())
	_, err = bucket.Put(ctx, store.Key(media), string(mimeTypes[name]), int64(len(data)), bytes.NewReader(data))
	Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(data)
	t.hashes[name] = hex.EncodeToString(sum[:])
}

// content returns a file's content: single-color images, a video, and the same video with a trailing box that players ignore.
func content(name string) []byte {
	colours := map[string]color.Color{"red": color.RGBA{R: 200, A: 255}, "blue": color.RGBA{B: 200, A: 255}}
	if c, ok := colours[name]; ok {
		picture, err := mediatest.Picture(c)
		Expect(err).NotTo(HaveOccurred())
		return picture
	}
	film, err := mediatest.Film(repository)
	Expect(err).NotTo(HaveOccurred())
	if name == "long" {
		film = binary.BigEndian.AppendUint32(film, 8+inParts)
		film = append(append(film, "free"...), make([]byte, inParts)...)
	}
	return film
}

// post creates a post of a kind with unique text.
func (t *team) post(ctx context.Context, k *kind, words string, to ...v1alpha1.Platform) *sent {
	return t.say(ctx, k, fmt.Sprintf("%s %d", words, serial.Add(1)), time.Time{}, to...)
}

// say creates a post of a kind with exactly these words; if at is zero, it is due now.
func (t *team) say(ctx context.Context, k *kind, words string, at time.Time, to ...v1alpha1.Platform) *sent {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", serial.Add(1)), Namespace: t.namespace, Finalizers: []string{v1alpha1.DeliveryFinalizer},
		},
	}
	if !at.IsZero() {
		p.Spec.ScheduledAt = v1alpha1.NewTimePtr(at)
	}
	for _, platform := range to {
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: string(platform)}})
	}
	k.fill(p, words)
	create(ctx, p)
	out := &sent{Post: p, kind: k}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posts = append(t.posts, out)
	return out
}

// cancel cancels a post, unless that is rejected because delivery has started.
func (t *team) cancel(ctx context.Context, p *sent) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"cancelled": true}})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		err := k8s.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		p.cancelled = err == nil
		if apierrors.IsInvalid(err) {
			return nil
		}
		return err
	}).Should(Succeed())
}

// all returns the team's current posts, by name.
func (t *team) all(ctx context.Context) (out map[string]*v1alpha1.Post, err error) {
	var list v1alpha1.PostList
	if err := k8s.List(ctx, &list, client.InNamespace(t.namespace)); err != nil {
		return nil, err
	}
	out = map[string]*v1alpha1.Post{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// unsettled returns the names of posts that are not finished. A post that was given up waits for a user and does not
// count.
func (t *team) unsettled(ctx context.Context) (names []string, err error) {
	all, err := t.all(ctx)
	for name, p := range all {
		if !settled(p) {
			names = append(names, fmt.Sprintf("%s (%s, %+v)", name, p.Spec.Category, p.Status.Targets))
		}
	}
	return names, err
}

func settled(p *v1alpha1.Post) bool {
	switch p.Status.Phase {
	case v1alpha1.PhasePosted, v1alpha1.PhaseCancelled:
		return true
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing:
		return false
	case v1alpha1.PhaseFailed:
		return !slices.ContainsFunc(p.Status.Targets, func(t v1alpha1.TargetStatus) bool {
			return t.Phase != v1alpha1.PhasePosted && t.Phase != v1alpha1.PhaseFailed
		})
	default:
		return false
	}
}

// standing describes the unfinished posts.
func standing(ctx context.Context, posts []*sent) string {
	var out strings.Builder
	for _, p := range posts {
		var now v1alpha1.Post
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &now); err != nil {
			fmt.Fprintf(&out, "%s cannot be read: %v\n", p.Name, err)
			continue
		}
		for i := range now.Status.Targets {
			if t := &now.Status.Targets[i]; !settled(&now) {
				fmt.Fprintf(&out, "%s of kind %s on %s: %s %q, attempt %+v\n", p.Name, p.kind.name, t.Platform, t.Reason, t.Message, t.Attempt)
			}
		}
	}
	return out.String()
}

// over reports whether the post is settled.
func over(ctx context.Context, p *sent) bool {
	var now v1alpha1.Post
	return k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &now) == nil && settled(&now)
}
