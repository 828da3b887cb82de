// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/posting/delivery"
)

const (
	// maxGroups is the number of Leases, and so of groups that can be armed at once. The manager's role names them.
	maxGroups = 32
	// groupFill is how many posts a group gets before the next one is armed, and groupSize is how many it has at most:
	// an account's posts stay together. A group is a write at its time, and is in doubt after a crash; see docs/adr/0026.
	groupFill, groupSize = 160, 256
	// perAccount is how many posts of an account are armed for the same time. Their calls are made one after the other
	// within the window of an armed call, 10 s by default.
	perAccount = 12
	// maxClosed is how many closed groups a Lease lists. Their posts are written within seconds.
	maxClosed = 16
)

// armTimeout limits the writes that arm a group. Posts that would join it wait for them.
const armTimeout = 2 * time.Second

// armPause is how long no group is armed after a failure: posts are then claimed when they are due, as if there were no
// groups.
const armPause = time.Second

// The annotations of a group's Lease: the state of the group that it holds, for people, and the versions of the groups
// that were closed before they were opened.
const (
	stateAnnotation  = "social.herald.dev/group"
	closedAnnotation = "social.herald.dev/closed-groups"
)

// ErrNoGroup is returned if a post cannot be armed: it is claimed when it is due.
var ErrNoGroup = errors.New("no group is available")

// errNotOpened is the reason why the calls of a group are not made.
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
	// Within limits how long opening a group may take, and closing one.
	Within time.Duration
	// Failpoint is called at the named points.
	Failpoint func(point string)
	Log       logr.Logger
}

// Groups arms, opens and closes groups. A group is a version of a Lease: the write that armed it. Opening and closing
// it are writes on the condition that the Lease still has this version, so at most one of them succeeds.
type Groups struct {
	o GroupOptions

	mu sync.Mutex
	// leading is the context of the running manager, or nil before its start. calls are the armed posts of this process.
	leading context.Context //nolint:containedctx // groups are opened while this process leads
	calls   sync.WaitGroup
	used    [maxGroups]bool
	next    int
	// pausedUntil is when the next group may be armed after a failure.
	pausedUntil time.Time
	// filling are the groups that still get posts, by their time.
	filling map[int64][]*group
	known   map[string]delivery.GroupState
	// closing serializes closing, so that the posts of a group cause one write.
	closing sync.Mutex
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
	return &Groups{o: o, filling: map[int64][]*group{}, known: map[string]delivery.GroupState{}}
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

// join reserves a place for a post with the given accounts in a group that is opened when it is due. The first post of
// a group arms it.
func (g *Groups) join(ctx context.Context, due time.Time, accounts []string) (*group, error) { //nolint:contextcheck // the group is opened after the reconciliation has ended
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leading == nil || g.leading.Err() != nil || !due.After(g.o.Clock.Now()) {
		return nil, ErrNoGroup
	}
	groups := g.filling[due.UnixMilli()]
	for _, account := range accounts {
		n := 0
		for _, gr := range groups {
			n += gr.accounts[account]
		}
		if n >= perAccount {
			return nil, ErrNoGroup
		}
	}
	for _, gr := range groups {
		together := slices.ContainsFunc(accounts, func(account string) bool { return gr.accounts[account] > 0 })
		if gr.reserved < groupFill || together && gr.reserved < groupSize {
			return gr.reserve(accounts)
		}
	}
	gr, err := g.arm(ctx, due)
	if err != nil {
		return nil, err
	}
	g.filling[due.UnixMilli()] = append(groups, gr)
	leading := g.leading
	g.calls.Go(func() { g.openInTime(leading, gr) })
	return gr.reserve(accounts)
}

func (gr *group) reserve(accounts []string) (*group, error) {
	gr.mu.Lock()
	defer gr.mu.Unlock()
	if gr.over {
		return nil, ErrNoGroup
	}
	gr.reserved++
	for _, account := range accounts {
		gr.accounts[account]++
	}
	return gr, nil
}

// add adds a post whose claim is stored. If the group was opened before, its calls are made at once: what a call needs
// is that both writes are confirmed, in any order.
func (g *Groups) add(gr *group, r *run) {
	if gr.addMember(r) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leading != nil {
		g.send(g.leading, []*run{r}, gr.err)
	}
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

// arm stores a new group in the next free Lease. The caller holds the lock.
func (g *Groups) arm(ctx context.Context, due time.Time) (*group, error) {
	if g.o.Clock.Now().Before(g.pausedUntil) {
		return nil, ErrNoGroup
	}
	ctx, cancel := context.WithTimeout(ctx, armTimeout)
	defer cancel()
	for range maxGroups {
		slot := g.next
		g.next = (g.next + 1) % maxGroups
		if g.used[slot] {
			continue
		}
		lease, err := g.store(ctx, slot, due)
		if err != nil {
			g.pausedUntil = g.o.Clock.Now().Add(armPause)
			g.o.Log.Error(err, "cannot arm a group; posts are claimed when they are due", "lease", g.leaseName(slot))
			return nil, ErrNoGroup
		}
		g.used[slot] = true
		gr := &group{due: due, slot: slot, lease: lease, ref: refOf(lease), accounts: map[string]int{}}
		g.known[gr.ref] = delivery.GroupMayBeOpen
		return gr, nil
	}
	return nil, ErrNoGroup
}

// store writes a Lease as a new, armed group. A group of another process that it still holds is closed by that.
func (g *Groups) store(ctx context.Context, slot int, due time.Time) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := g.o.APIReader.Get(ctx, client.ObjectKey{Namespace: g.o.Namespace, Name: g.leaseName(slot)}, lease)
	missing := apierrors.IsNotFound(err)
	switch {
	case missing:
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: g.o.Namespace, Name: g.leaseName(slot), OwnerReferences: g.o.Owners(ctx),
			Labels: map[string]string{"app.kubernetes.io/name": "herald", "app.kubernetes.io/managed-by": g.o.Prefix + "-manager"},
		}}
	case err != nil:
		return nil, err
	case lease.Annotations[stateAnnotation] == "armed":
		addClosed(lease)
	}
	g.describe(lease, "armed")
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: due}
	if missing {
		return lease, g.o.Client.Create(ctx, lease)
	}
	return lease, g.o.Client.Update(ctx, lease)
}

func (g *Groups) describe(lease *coordinationv1.Lease, state string) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, stateAnnotation, state)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: g.o.Clock.Now()}
}

// addClosed lists the group that a Lease holds as closed. The update that follows fails if the group was opened.
func addClosed(lease *coordinationv1.Lease) {
	closed := append(closedVersions(lease), lease.ResourceVersion)
	if len(closed) > maxClosed {
		closed = closed[len(closed)-maxClosed:]
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, closedAnnotation, strings.Join(closed, " "))
}

func closedVersions(lease *coordinationv1.Lease) []string {
	return strings.Fields(lease.Annotations[closedAnnotation])
}

// State returns what this process knows about a group.
func (g *Groups) State(ref string) delivery.GroupState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if state, ok := g.known[ref]; ok {
		return state
	}
	return delivery.GroupUnread
}

// Close closes another process's group, unless it may be open. State returns the result.
func (g *Groups) Close(ctx context.Context, ref string) error {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.State(ref) != delivery.GroupUnread {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.Within)
	defer cancel()
	closed, err := g.tryClose(ctx, ref)
	if apierrors.IsConflict(err) { // it was opened, or closed by another process, in between
		closed, err = g.tryClose(ctx, ref)
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cannot close a group of posts that were claimed ahead: %w", err)
	}
	state := delivery.GroupMayBeOpen
	if closed && err == nil {
		state = delivery.GroupClosed
	}
	g.o.Log.Info("read the group of another process", "group", ref, "closed", closed)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[ref] = state
	return nil
}

// tryClose reports whether a group is closed before it was opened. A group that does not exist, or that was changed by
// anything else, may be open.
func (g *Groups) tryClose(ctx context.Context, ref string) (closed bool, err error) {
	name, version, _ := strings.Cut(ref, "/")
	if !g.owns(name) {
		return false, nil // a status cannot name any other Lease
	}
	var lease coordinationv1.Lease
	if err := g.o.APIReader.Get(ctx, types.NamespacedName{Namespace: g.o.Namespace, Name: name}, &lease); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if slices.Contains(closedVersions(&lease), version) {
		return true, nil
	}
	if lease.ResourceVersion != version {
		return false, nil
	}
	addClosed(&lease)
	g.describe(&lease, "closed")
	if err := g.o.Client.Update(ctx, &lease); err != nil {
		return false, err
	}
	return true, nil
}

// owns reports whether a Lease is one of those that hold groups.
func (g *Groups) owns(lease string) bool {
	for slot := range maxGroups {
		if g.leaseName(slot) == lease {
			return true
		}
	}
	return false
}
