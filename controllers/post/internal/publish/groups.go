// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

const (
	// maxGroups is the number of Leases, and therefore of groups that can be armed at once. The manager's role lists the
	// Leases by name.
	maxGroups = 32
	// maxPerTime is the maximum number of groups that are armed for the same time. It leaves Leases for posts that are due
	// at other times.
	maxPerTime = 24
	// groupFill is the number of posts that a group gets before the next one is armed. Up to groupSize, it still accepts
	// posts of its accounts, which stay together. A group costs one write when it is due, and its outcome is in doubt
	// after a crash; see docs/adr/0026.
	groupFill, groupSize = 208, 256
	// maxArmedBytes limits the armed posts by their total size as JSON, with their connections and files. In memory, they
	// take several times as much.
	maxArmedBytes = 24 << 20
	// maxClosed is the number of closed groups that a Lease lists. No more are needed, since their posts are written
	// within seconds.
	maxClosed = 16
	// groupStateTTL is the time for which a group's state is remembered. It is longer than its posts take to settle, and
	// the state can be read again.
	groupStateTTL = time.Hour
)

// armTimeout limits the writes that arm a group. Posts that would join it wait for them.
const armTimeout = 2 * time.Second

// ArmPause is the pause in arming groups after a failure, and permissionPause is the pause if the manager's role does not
// include Leases.
const (
	ArmPause        = time.Second
	permissionPause = time.Minute
)

// The annotations of a group's Lease: the state of the group that it holds, for human readers, and the versions of the
// groups that were closed before they were opened.
const (
	stateAnnotation  = "social.herald.dev/group"
	closedAnnotation = "social.herald.dev/closed-groups"
)

// ErrNoGroup is returned if a post cannot be armed. The post is then claimed when it is due.
var ErrNoGroup = errors.New("no group is available")

// ErrNoGroupYet is the ErrNoGroup of a post that may be armed after ArmPause: the last group could not be stored.
var ErrNoGroupYet = fmt.Errorf("%w yet", ErrNoGroup)

// errStopped is the reason for not making the calls of a post that is claimed while this process stops.
var errStopped = errors.New("the manager was stopped")

// errNotOpened is the reason for not making the calls of a group.
var errNotOpened = errors.New("the group was not opened")

// GroupOptions configures Groups.
type GroupOptions struct {
	// Client writes to the API server, and APIReader reads from it without the cache.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.WithTicker
	// Namespace is the manager's namespace, and Prefix is the release's name.
	Namespace, Prefix string
	// Owners returns the owners of the Leases, which are removed with them.
	Owners func(ctx context.Context) []metav1.OwnerReference
	// Within limits the time for opening a group, and for closing one. It is a claim's send window.
	Within time.Duration
	// Failpoint is called at the failpoints of this package.
	Failpoint func(point string)
	Log       logr.Logger
}

// Groups arms, opens and closes groups. A group is a version of a Lease: the write that armed it. Opening and closing
// it are writes on the condition that the Lease still has this version, so at most one of them succeeds.
type Groups struct {
	o GroupOptions

	mu sync.Mutex
	// leading is the context of the running manager, or nil before its start. calls waits for the groups to open and their
	// calls to end.
	leading context.Context //nolint:containedctx // groups are opened while this process leads
	calls   sync.WaitGroup
	used    [maxGroups]bool
	next    int
	// foreign holds, by Lease, the due times of other processes' armed groups. These Leases are overwritten last.
	foreign [maxGroups]time.Time
	// bytes is the size of the armed posts.
	bytes int
	// pausedUntil is the earliest time for arming a group after a failure, and paused is the error until then.
	pausedUntil time.Time
	paused      error
	// filling holds the groups that still accept posts, by their due time.
	filling map[int64][]*group
	known   map[string]knownGroup
	times   callTimes
	// closing serializes the closing of groups, so that a group's posts cause only one write.
	closing sync.Mutex
}

// knownGroup is the state of a group and when it was read.
type knownGroup struct {
	state delivery.GroupState
	at    time.Time
}

// place is a post's share of a group: its accounts, and its size.
type place struct {
	accounts []armedAccount
	bytes    int
}

type armedAccount struct {
	gate     string
	platform v1alpha1.Platform
}

// group is an armed group of this process.
type group struct {
	due   time.Time
	slot  int
	lease *coordinationv1.Lease
	ref   string

	mu       sync.Mutex
	reserved int
	accounts map[string]int
	members  []*run
	// over is set when the group is about to be opened: no further post joins it. ended is set afterwards, with err if the
	// group was not opened.
	over, ended bool
	err         error
}

// NewGroups returns Groups that do not arm any posts before Start.
func NewGroups(o GroupOptions) *Groups {
	return &Groups{o: o, filling: map[int64][]*group{}, known: map[string]knownGroup{}, times: newCallTimes()}
}

// Start implements manager.Runnable. It returns after ctx is done and the calls of opened groups are recorded.
func (g *Groups) Start(ctx context.Context) error {
	g.mu.Lock()
	g.leading = ctx
	g.mu.Unlock()
	<-ctx.Done()
	g.mu.Lock()
	g.leading = nil
	g.mu.Unlock()
	g.calls.Wait()
	return nil
}

func (g *Groups) leaseName(slot int) string { return fmt.Sprintf("%s-group-%02d", g.o.Prefix, slot) }

func refOf(lease *coordinationv1.Lease) string { return lease.Name + "/" + lease.ResourceVersion }

// join reserves a place for a post in a group that is opened when it is due. The first post of a group arms it.
func (g *Groups) join(ctx context.Context, due time.Time, p place) (*group, error) { //nolint:contextcheck // the group is opened after the reconciliation has ended
	g.mu.Lock()
	defer g.mu.Unlock()
	groups := g.filling[due.UnixMilli()]
	if g.leading == nil || g.leading.Err() != nil || !due.After(g.o.Clock.Now()) || g.bytes+p.bytes > maxArmedBytes || !g.inTime(groups, p.accounts) {
		return nil, ErrNoGroup
	}
	for _, gr := range groups {
		together := slices.ContainsFunc(p.accounts, func(a armedAccount) bool { return gr.accounts[a.gate] > 0 })
		if gr.reserved < groupFill || together && gr.reserved < groupSize {
			return g.reserve(gr, p)
		}
	}
	if len(groups) >= maxPerTime {
		return nil, ErrNoGroup
	}
	gr, err := g.arm(ctx, due)
	if err != nil {
		return nil, err
	}
	g.filling[due.UnixMilli()] = append(groups, gr)
	leading := g.leading
	g.calls.Go(func() { g.openInTime(leading, gr) })
	return g.reserve(gr, p)
}

// inTime reports whether all of the accounts' calls in the groups can be made in time if each account gets one more.
func (g *Groups) inTime(groups []*group, accounts []armedAccount) bool {
	for _, a := range accounts {
		n := 0
		for _, gr := range groups {
			n += gr.accounts[a.gate]
		}
		if n >= g.times.fit(a.platform, delivery.ArmedWindow(0, g.o.Within)) {
			return false
		}
	}
	return true
}

func (g *Groups) reserve(gr *group, p place) (*group, error) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if gr.over {
		return nil, ErrNoGroup
	}
	gr.reserved++
	for _, a := range p.accounts {
		gr.accounts[a.gate]++
	}
	g.bytes += p.bytes
	return gr, nil
}

// release frees the place of a post that was not claimed.
func (g *Groups) release(gr *group, p place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gr.mu.Lock()
	defer gr.mu.Unlock()
	gr.reserved--
	for _, a := range p.accounts {
		gr.accounts[a.gate]--
	}
	g.bytes -= p.bytes
}

// forget frees the bytes of a post whose results are recorded.
func (g *Groups) forget(bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= bytes
}

// add adds a post whose claim is stored. If the group is already open, the post's calls are made at once: a call
// requires that both writes are confirmed, in either order. A stopping process does not make them.
func (g *Groups) add(gr *group, r *run) {
	if gr.addMember(r) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, err := g.leading, gr.err
	if ctx == nil {
		ctx = context.Background()
		if err == nil {
			err = errStopped
		}
	}
	g.send(ctx, []*run{r}, err)
}

// addMember adds a post unless the group has ended, after which its err does not change.
func (gr *group) addMember(r *run) bool {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if !gr.ended {
		gr.members = append(gr.members, r)
	}
	return !gr.ended
}

// arm stores a new group in the next free Lease, preferably in one that does not hold another process's group. The
// caller holds the lock.
func (g *Groups) arm(ctx context.Context, due time.Time) (*group, error) {
	if g.o.Clock.Now().Before(g.pausedUntil) {
		return nil, g.paused
	}
	ctx, cancel := context.WithTimeout(ctx, armTimeout)
	defer cancel()
	for _, overwrite := range []bool{false, true} {
		for range maxGroups {
			slot := g.next
			g.next = (g.next + 1) % maxGroups
			if g.used[slot] || !overwrite && g.foreign[slot].After(g.o.Clock.Now()) {
				continue
			}
			lease, err := g.store(ctx, slot, due, overwrite)
			switch {
			case err != nil:
				pause := ArmPause
				if g.paused = ErrNoGroupYet; apierrors.IsForbidden(err) {
					pause, g.paused = permissionPause, ErrNoGroup
				}
				g.pausedUntil = g.o.Clock.Now().Add(pause)
				g.o.Log.Error(err, "cannot arm a group; posts that are not armed are claimed when they are due", "lease", g.leaseName(slot), "pause", pause)
				return nil, g.paused
			case lease == nil:
				continue
			}
			g.used[slot], g.foreign[slot] = true, time.Time{}
			gr := &group{due: due, slot: slot, lease: lease, ref: refOf(lease), accounts: map[string]int{}}
			g.remember(gr.ref, delivery.GroupMayBeOpen)
			return gr, nil
		}
	}
	return nil, ErrNoGroup
}
