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
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/must"
)

var (
	long = flag.Bool("long", false, "publish 300 posts and kill the manager 40 times, instead of 24 and 3 times")
	seed = flag.Uint64("seed", 0, "repeat the cuts and pauses of a run; 0 for new ones")
)

// TestKilledManagers publishes posts while the manager is killed at random moments and the connections of publishing
// calls are cut, before or after the server has processed them. The server's own repository then has each post once, and
// Herald knows it: no post is lost, published twice, or left to a person.
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
	address, cuts := cut(t, s, func(string) fate {
		return []fate{passes, passes, passes, passes, passes, passes, cutBefore, cutAfter}[draw(8)]
	})
	h := startHerald(t, &configv1alpha1.Platform{Server: address}, nil)
	h.setUp(t, &s.Accounts[0])
	for made := range posts {
		must.Succeed(t, h.env.Client.Create(t.Context(), &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprint("post-", made)},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "sky"}, Caption: fmt.Sprint("post ", made)},
			}},
		}))
		// One kill follows each group of posts, at a random moment of their delivery.
		if (made+1)*kills/posts > made*kills/posts {
			pause := time.NewTimer(time.Duration(draw(1500)) * time.Millisecond)
			<-pause.C
			h.manager.Kill()
			h.restart()
		}
	}
	h.await(t, "all posts", func() (bool, error) {
		var all v1alpha1.PostList
		if err := h.env.Client.List(t.Context(), &all, client.InNamespace(team)); err != nil {
			return false, err
		}
		posted := 0
		for i := range all.Items {
			p := &all.Items[i]
			switch phase := posting.Of(p).Phase(); {
			case phase == v1alpha1.PhasePosted:
				posted++
			case phase == v1alpha1.PhaseFailed, attempt.Undecided(posting.Of(p).Target(0)):
				t.Errorf("%s is %s: %+v", p.Name, phase, p.Status)
				return true, nil
			}
		}
		return posted == posts, fmt.Errorf("%d of %d posts are online", posted, posts)
	})
	count := map[string]int{}
	for _, p := range s.read(t, &s.Accounts[0]) {
		count[p.Text]++
	}
	for n := range posts {
		if text := fmt.Sprint("post ", n); count[text] != 1 {
			t.Errorf("%q occurs %d times on the server", text, count[text])
		}
	}
	if len(count) != posts || cuts.Load() == 0 {
		t.Errorf("the server has %d texts, want %d; %d calls were cut off", len(count), posts, cuts.Load())
	}
	t.Logf("%d posts, %d kills, %d cuts", posts, kills, cuts.Load())
}
