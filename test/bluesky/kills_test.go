// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

var (
	long = flag.Bool("long", false, "publish 300 posts and kill the manager 40 times, instead of 24 and 3 times")
	seed = flag.Uint64("seed", 0, "repeat the cuts and pauses of a run; 0 for new ones")
)

// TestKilledManagers publishes texts, pictures and threads while the manager is killed at random moments and the
// connections of publishing and uploading calls are cut, before or after the server has processed them. Afterwards, the
// repository on the server contains each post once, and Herald's outcomes match: no post is lost, published twice or
// undecided, and threads are complete and in order.
func TestKilledManagers(t *testing.T) {
	posts, kills := 24, 3
	if *long {
		posts, kills = 300, 40
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	s := start(t, "bakery.test")
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(*seed, 0))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	address, cuts := cut(t, s, cutSome(draw))
	h := startHerald(t, &configv1alpha1.Platform{Server: address}, nil)
	h.setUp(t, &s.Accounts[0])
	drafts := make([]draft, posts)
	for made := range drafts {
		d := &drafts[made]
		*d = mixed(t, made)
		must.Succeed(t, h.env.Client.Create(t.Context(), &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: d.name},
			Spec:       d.spec(func(data []byte) string { return h.upload(t, string(v1alpha1.MimeJPEG), "picture.jpg", data) }),
		}))
		// One kill follows each group of posts, at a random moment of their delivery.
		if (made+1)*kills/posts > made*kills/posts {
			pause := time.NewTimer(time.Duration(draw(1500)) * time.Millisecond)
			<-pause.C
			h.manager.Kill()
			h.restart()
		}
	}
	h.posted(t, posts)
	published, records := s.read(t, &s.Accounts[0]), 0
	texts := byText(published)
	for i := range drafts {
		drafts[i].check(t, texts)
		records += len(drafts[i].parts)
	}
	if len(published) != records || cuts.Load() == 0 {
		t.Errorf("the server has %d records, want %d; %d calls were cut off", len(published), records, cuts.Load())
	}
	t.Logf("%d posts with %d records, %d kills, %d cuts", posts, records, kills, cuts.Load())
}

// cutSome cuts every fourth call on average. It cuts the upload of a file only once, because each retry waits twice as
// long as the previous one.
func cutSome(draw func(n int) int) func(request) fate {
	var uploads sync.Map
	return func(r request) fate {
		decided := []fate{passes, passes, passes, passes, passes, passes, cutBefore, cutAfter}[draw(8)]
		if decided != passes && r.method == uploadBlob {
			if _, again := uploads.LoadOrStore(string(r.body), true); again {
				return passes
			}
		}
		return decided
	}
}

// mixed returns the nth post of a run: in every six, one is a thread with pictures, one has pictures, and the others
// are texts.
func mixed(t *testing.T, n int) draft {
	t.Helper()
	const cycle, thread, pictures = 6, 1, 4
	text := fmt.Sprint("post ", n)
	d := draft{name: fmt.Sprint("post-", n), category: v1alpha1.CategoryText, parts: []part{{text: text}}}
	shade := uint8(n % 100)
	switch n % cycle {
	case thread:
		d.category = v1alpha1.CategoryTree
		d.parts = append(d.parts, part{text + ", two", [][]byte{gray(t, shade)}}, part{text + ", three", nil})
	case pictures:
		d.category, d.parts[0].files = v1alpha1.CategoryImage, [][]byte{gray(t, shade), gray(t, shade+100)}
	}
	return d
}
