// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage counts what may be used only so often, by the names of the posts
// that use it. It does no I/O; internal/quota stores the count.
//
// A post takes its share in two steps. Before it is created, the apiserver
// reserves by its name (Reserve). When its delivery begins, the manager confirms
// by its UID (Confirm); from then on the entries count whatever becomes of the
// object. Settle makes the entries of a post agree with the post: after a
// cancel, when nothing is left to do for it, and in the sweep, which repairs
// what a crash left behind (Orphan is for posts that do not exist).
package usage

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// reservationTTL is how long a reservation lasts for a post that is never
	// created: longer than any request may take.
	reservationTTL = 10 * time.Minute
	// monthRetention is how long the count of a month is kept after its end, for people
	// who want to look something up.
	monthRetention = 62 * 24 * time.Hour
	// sameMoment is how far apart the times of two requests for the same post may
	// be. A post that is published at once has the time of its request, and a
	// repeated request has a later one.
	sameMoment = time.Minute

	monthLayout = "2006-01"
)

// Month returns the period that is the calendar month (UTC) of a time.
func Month(at time.Time) string { return at.UTC().Format(monthLayout) }

// Use is what a target of a post takes of what a Usage counts.
type Use struct {
	// Target is its index in the post.
	Target int
	// Count is how much it takes, or still may; zero if nothing.
	Count int
	// At is when the target is to be published.
	At time.Time
	// Final says that this does not change any more.
	Final bool
	// Assumed says that it is not known where the target goes. It keeps what was
	// counted for it, and takes nothing more.
	Assumed bool
}

// Refusal is a target for which not enough is left.
type Refusal struct {
	Target int
	// Used is how much is taken without it, in the fullest period that holds the
	// target's time.
	Used int
}

// Reservation is what a request wants for the post that it is about to create.
type Reservation struct {
	Post string
	// Request tells the requests apart that may come for one post. A sole request
	// leaves it empty.
	Request string
	Uses    []Use
}

// PostUses is a post as it is stored.
type PostUses struct {
	Name string
	UID  types.UID
	// Begun says that its delivery has begun.
	Begun bool
	// Uses are what its targets take, one for each that may take anything.
	Uses []Use
}

// Reserve enters what a request wants, all of it or, if the limit does not allow
// it, nothing: then it returns the refused targets.
func Reserve(u *v1alpha1.Usage, r Reservation, limit int, now time.Time) []Refusal {
	others := without(u, r.Post, r.Request)
	next := slices.Clone(others)
	var refused []Refusal
	for _, use := range r.Uses {
		if use.Count == 0 || use.Assumed {
			continue
		}
		entry := newEntry(r.Post, use, now)
		entry.Request = r.Request
		var fits bool
		if next, fits = add(&u.Spec, next, &entry, limit); !fits {
			refused = append(refused, Refusal{use.Target, fullest(&u.Spec, others, use.At)})
		}
	}
	if len(refused) == 0 {
		set(u, next, limit)
	}
	return refused
}

// Release takes back what a request reserved for a post that it did not create.
func Release(u *v1alpha1.Usage, post, request string) {
	set(u, without(u, post, request), int(u.Status.Limit))
}

// without returns the entries but those that a request reserved for a post.
func without(u *v1alpha1.Usage, post, request string) []v1alpha1.UsageEntry {
	return slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return e.Post == post && e.UID == "" && e.Request == request
	})
}

// Confirm enters what a post takes whose delivery begins, as far as the limit
// allows, and returns the refused targets. What was reserved for the post it has
// already; a target never has more than it needs.
func Confirm(u *v1alpha1.Usage, post PostUses, limit int, now time.Time) []Refusal {
	next, own, reserved := split(u, &post)
	held := slices.Concat(own, largestReservation(&u.Spec, reserved, post.Uses))
	sliding := window(&u.Spec) > 0
	var missing []Use
	for _, use := range post.Uses {
		i := slices.IndexFunc(held, func(e v1alpha1.UsageEntry) bool {
			return int(e.Target) == use.Target &&
				(use.Final || use.Assumed || int(e.Count) >= use.Count && (!sliding || sameInstant(e.At, use.At)))
		})
		switch {
		case i >= 0:
			if e, left := reduced(held[i], use); left {
				e.UID, e.Request, e.Settled = post.UID, "", use.Final
				next = append(next, e)
			}
		case !use.Final && !use.Assumed && use.Count > 0 && covers(&u.Spec, use.At):
			missing = append(missing, use)
		}
	}
	var refused []Refusal
	for _, use := range missing {
		entry := newEntry(post.Name, use, now)
		entry.UID = post.UID
		var fits bool
		if next, fits = add(&u.Spec, next, &entry, limit); !fits {
			refused = append(refused, Refusal{use.Target, fullest(&u.Spec, next, use.At)})
		}
	}
	set(u, next, limit)
	return refused
}

// Settle makes the entries of a post agree with it: none counts more than its
// target takes. Entries of an earlier post of that name stay for good. Once the
// delivery of a post has begun, nothing is reserved for it any more: it took what
// it needed, here or in another Usage.
func Settle(u *v1alpha1.Usage, post PostUses) {
	next, own, reserved := split(u, &post)
	for i := range next {
		next[i].Settled = next[i].Settled || next[i].Post == post.Name
	}
	if !post.Begun && len(own) == 0 {
		next = append(next, largestReservation(&u.Spec, reserved, post.Uses)...)
	}
	for _, e := range own {
		use := useOf(post.Uses, e)
		if e, left := reduced(e, use); left {
			e.Settled = use.Final
			next = append(next, e)
		}
	}
	set(u, next, int(u.Status.Limit))
}

// Orphan settles the entries of a post that does not exist. A reservation is
// given back once no request can still create the post; what was delivered stays
// counted.
func Orphan(u *v1alpha1.Usage, post string, now time.Time) {
	next := slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return e.Post == post && e.UID == "" && now.Sub(e.Since.Time) >= reservationTTL
	})
	for i := range next {
		next[i].Settled = next[i].Settled || next[i].Post == post && next[i].UID != ""
	}
	set(u, next, int(u.Status.Limit))
}

// Prune drops entries of a sliding window that no new one can share a window
// with.
func Prune(u *v1alpha1.Usage, now time.Time) {
	span := window(&u.Spec)
	if span == 0 {
		return
	}
	set(u, slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return now.Sub(e.At.Time) > 2*span
	}), int(u.Status.Limit))
}

// OpenPosts lists the posts whose entries may change, by name.
func OpenPosts(u *v1alpha1.Usage) []string {
	var names []string
	for i := range u.Status.Entries {
		if e := &u.Status.Entries[i]; !e.Settled && !slices.Contains(names, e.Post) {
			names = append(names, e.Post)
		}
	}
	return names
}

// Expired reports whether a Usage is of a month so long ago that it can go.
func Expired(spec *v1alpha1.UsageSpec, now time.Time) bool {
	month, err := time.Parse(monthLayout, spec.Period)
	return err == nil && now.Sub(month.AddDate(0, 1, 0)) > monthRetention
}

// split parts the entries into those of other posts, those that the delivery of
// this post took, and those that are reserved for it.
func split(u *v1alpha1.Usage, post *PostUses) (others, own, reserved []v1alpha1.UsageEntry) {
	for _, e := range u.Status.Entries {
		switch {
		case e.Post != post.Name, e.UID != "" && e.UID != post.UID:
			others = append(others, e)
		case e.UID != "":
			own = append(own, e)
		default:
			reserved = append(reserved, e)
		}
	}
	return others, own, reserved
}

// largestReservation returns the reservation, of those that several requests made for a
// post, that holds most of what the post takes. It is the post's now, whichever
// request made it.
func largestReservation(spec *v1alpha1.UsageSpec, reserved []v1alpha1.UsageEntry, uses []Use) []v1alpha1.UsageEntry {
	sums, kept := map[string]int32{}, map[string][]v1alpha1.UsageEntry{}
	best := ""
	for _, e := range reserved {
		use := useOf(uses, e)
		request := e.Request
		e, left := reduced(e, use)
		if !left || !sameTime(spec, e.At.Time, use.At) {
			continue
		}
		e.Request = ""
		kept[request] = append(kept[request], e)
		if sums[request] += e.Count; sums[request] > sums[best] {
			best = request
		}
	}
	return kept[best]
}

// useOf returns what the target of an entry takes: nothing, if an edit took it
// away.
func useOf(uses []Use, e v1alpha1.UsageEntry) Use {
	if i := slices.IndexFunc(uses, func(u Use) bool { return u.Target == int(e.Target) }); i >= 0 {
		return uses[i]
	}
	return Use{Target: int(e.Target)}
}

// reduced returns an entry that counts no more than its target takes, and whether
// it counts anything.
func reduced(e v1alpha1.UsageEntry, use Use) (v1alpha1.UsageEntry, bool) {
	e.Count = min(e.Count, narrow(use.Count))
	return e, e.Count > 0
}

func newEntry(post string, use Use, now time.Time) v1alpha1.UsageEntry {
	return v1alpha1.UsageEntry{
		Post: post, Target: narrow(use.Target), Count: narrow(use.Count), At: v1alpha1.NewTime(use.At), Since: v1alpha1.NewTime(now),
	}
}

// set stores entries in their order, and what they come to.
func set(u *v1alpha1.Usage, entries []v1alpha1.UsageEntry, limit int) {
	slices.SortFunc(entries, func(a, b v1alpha1.UsageEntry) int {
		return cmp.Or(cmp.Compare(a.Post, b.Post), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Request, b.Request), cmp.Compare(a.Target, b.Target))
	})
	used := 0
	for i := range entries {
		used = max(used, from(&u.Spec, entries, entries[i].At.Time))
	}
	u.Status = v1alpha1.UsageStatus{Limit: narrow(limit), Used: narrow(used), Entries: entries}
}

// add appends an entry if the limit allows it. One that adds nothing, because
// another request reserved as much for the same post, always fits.
func add(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, entry *v1alpha1.UsageEntry, limit int) (next []v1alpha1.UsageEntry, fits bool) {
	with := slices.Concat(entries, []v1alpha1.UsageEntry{*entry})
	used := fullest(spec, with, entry.At.Time)
	if used > limit && used > fullest(spec, entries, entry.At.Time) {
		return entries, false
	}
	return with, true
}

// Used is how much is taken in the fullest period that holds a time: of a calendar
// month, in that month. It is as of that time, which the stored number is not.
func Used(u *v1alpha1.Usage, at time.Time) int { return fullest(&u.Spec, u.Status.Entries, at) }

// fullest returns how much is taken in the fullest period that contains a time.
func fullest(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, at time.Time) int {
	most := from(spec, entries, at)
	for i := range entries {
		if before := at.Sub(entries[i].At.Time); before > 0 && before < window(spec) {
			most = max(most, from(spec, entries, entries[i].At.Time))
		}
	}
	return most
}

// from returns how much is taken in the period that begins at a time: all of a
// month. A sliding window does not include its end: two entries that lie a whole
// window apart are never in the same one.
func from(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, start time.Time) int {
	span := window(spec)
	return sum(entries, func(t time.Time) bool { return span == 0 || !t.Before(start) && t.Sub(start) < span })
}

// sum adds up the entries of a period. Of what several requests reserved for one
// post, the largest counts.
func sum(entries []v1alpha1.UsageEntry, within func(time.Time) bool) int {
	type key struct{ post, request string }
	total := 0
	requests, largest := map[key]int{}, map[string]int{}
	for i := range entries {
		switch e := &entries[i]; {
		case !within(e.At.Time):
		case e.UID != "":
			total += int(e.Count)
		default:
			k := key{e.Post, e.Request}
			requests[k] += int(e.Count)
			total += max(requests[k]-largest[e.Post], 0)
			largest[e.Post] = max(largest[e.Post], requests[k])
		}
	}
	return total
}

// window is the length of a sliding window; zero for a calendar month.
func window(spec *v1alpha1.UsageSpec) time.Duration {
	span, err := time.ParseDuration(spec.Period)
	if err != nil {
		return 0
	}
	return span
}

// covers reports whether a time lies in the period. A sliding window slides
// anywhere.
func covers(spec *v1alpha1.UsageSpec, at time.Time) bool {
	return window(spec) > 0 || Month(at) == spec.Period
}

// sameTime reports whether a reservation made for one time holds for another.
func sameTime(spec *v1alpha1.UsageSpec, reserved, wanted time.Time) bool {
	return covers(spec, wanted) && (window(spec) == 0 || reserved.Sub(wanted).Abs() <= sameMoment)
}

func sameInstant(e v1alpha1.Time, at time.Time) bool { return e.Equal(v1alpha1.NewTimePtr(at)) }

// narrow fits a count into the schema's bounds.
func narrow(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }
