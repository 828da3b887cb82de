// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// some are shares of the first targets of a post, of so much each.
func some(counts ...int) []Item {
	var items []Item
	for target, count := range counts {
		items = append(items, Item{Target: target, Count: count, At: noon})
	}
	return items
}

func reservation(post string, uid types.UID, partly bool, counts ...int) Reservation {
	return Reservation{Post: post, UID: uid, Items: some(counts...), AllowPartial: partly}
}

func TestTake(t *testing.T) {
	t.Parallel()
	reserved := func(counts ...int) *Entry { return &Entry{Since: noon, Items: some(counts...)} }
	delivered := func(uid types.UID, counts ...int) *Entry {
		return &Entry{UID: uid, Since: noon, Items: some(counts...)}
	}
	gone := func(w Reservation) Reservation { w.Gone = "1"; return w }
	only := func(kept int) func(int) int {
		return func(target int) int {
			if target == kept {
				return 5
			}
			return 0
		}
	}
	tests := map[string]struct {
		reason      string
		page        Entries
		reservation Reservation
		want        Answer
		changed     bool
		used        int
	}{
		"First":          {"the book is empty", Entries{}, reservation("a", "", false, 1), Answer{Added: []int{0}}, true, 1},
		"Last":           {"it is exactly enough", Entries{"b": reserved(3)}, reservation("a", "", false, 2), Answer{Added: []int{0}}, true, 5},
		"OneTooMany":     {"it would be six of five", Entries{"b": reserved(4)}, reservation("a", "", false, 2), Answer{Refused: []int{0}, Used: 4}, false, 4},
		"AllOrNothing":   {"one of two has no room, so neither is taken", Entries{"b": reserved(4)}, reservation("a", "", false, 1, 1), Answer{Refused: []int{1}, Used: 4}, false, 4},
		"Partly":         {"whoever delivers takes what there is", Entries{"b": reserved(4)}, reservation("a", "1", true, 1, 1), Answer{Added: []int{0}, Refused: []int{1}, Used: 5}, true, 5},
		"PartlySmaller":  {"what is too much for one may suit the next", Entries{"b": reserved(4)}, reservation("a", "1", true, 2, 1), Answer{Added: []int{1}, Refused: []int{0}, Used: 4}, true, 5},
		"Again":          {"the same post never counts twice", Entries{"a": reserved(5)}, reservation("a", "", false, 5), Answer{}, false, 5},
		"AgainWhenFull":  {"what is held is not asked for anew", Entries{"a": reserved(1), "b": reserved(4)}, reservation("a", "1", true, 1), Answer{}, true, 5},
		"Delivered":      {"a repeat of a request whose post is delivered", Entries{"a": delivered("1", 1)}, reservation("a", "", false, 1), Answer{Delivered: "1"}, false, 1},
		"DeliveredTwice": {"a second attempt", Entries{"a": delivered("1", 1)}, reservation("a", "1", true, 1), Answer{}, false, 1},
		"MoreTargets":    {"another target of the post joins", Entries{"a": delivered("1", 1)}, reservation("a", "1", true, 1, 1), Answer{Added: []int{1}, Before: some(1)}, true, 2},
		"MoreCards":      {"the tree has grown", Entries{"a": reserved(2)}, reservation("a", "1", true, 4), Answer{Added: []int{0}, Before: some(2)}, true, 4},
		"TooManyCards":   {"the tree has grown too much, and keeps what it had", Entries{"a": reserved(2)}, reservation("a", "1", true, 6), Answer{Refused: []int{0}}, true, 2},
		"FewerCards":     {"what is too much is given back when the post is over", Entries{"a": reserved(4)}, reservation("a", "", false, 2), Answer{}, false, 4},
		"SameNameLater":  {"another post has the name of one that was delivered and deleted: both count", Entries{"a": delivered("1", 2)}, reservation("a", "2", true, 2), Answer{Added: []int{0}}, true, 4},
		"SameNameReserved": {
			"a post that was delivered is gone, and another is about to be created under its name: it takes a share of its own",
			Entries{"a": delivered("1", 2)},
			gone(reservation("a", "", false, 1)),
			Answer{Added: []int{0}},
			true, 3,
		},
		"SameNameFull": {
			"the same, and nothing is left",
			Entries{"a": delivered("1", 5)},
			gone(reservation("a", "", false, 1)),
			Answer{Refused: []int{0}, Used: 5},
			false, 5,
		},
		"SameNameOnceMore": {
			"the one that is gone is not the one that was delivered last",
			Entries{"a": delivered("2", 2)},
			gone(reservation("a", "", false, 1)),
			Answer{Delivered: "2"},
			false, 2,
		},
		"Swapped": {
			"the first target was changed to another platform, the second to this one: what was reserved is enough",
			Entries{"a": reserved(1), "b": reserved(4)},
			Reservation{Post: "a", UID: "1", AllowPartial: true, Items: []Item{{Target: 1, Count: 1, At: noon}}, Keep: only(1)},
			Answer{Added: []int{1}},
			true, 5,
		},
		"SwappedTooMany": {
			"what the target does not take any more is given back, whether or not there is enough for the other",
			Entries{"a": reserved(1), "b": reserved(4)},
			Reservation{Post: "a", UID: "1", AllowPartial: true, Items: []Item{{Target: 1, Count: 2, At: noon}}, Keep: only(1)},
			Answer{Refused: []int{1}, Used: 4},
			true, 4,
		},
		"SameNameTooMany": {"the former one still counts", Entries{"a": delivered("1", 4)}, reservation("a", "2", true, 2), Answer{Refused: []int{0}, Used: 4}, true, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, changed := tc.page.take(&tc.reservation, Limit{Most: 5}, noon)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || changed != tc.changed {
				t.Errorf("%s: changed %v, want %v:\n%s", tc.reason, changed, tc.changed, diff)
			}
			if used := tc.page.Used(); used != tc.used {
				t.Errorf("%s: %d are used afterwards, want %d", tc.reason, used, tc.used)
			}
			if e := tc.page[tc.reservation.Post]; tc.reservation.UID != "" && e != nil && len(e.Items) > 0 && e.UID != tc.reservation.UID {
				t.Errorf("%s: the shares are those of %q, want %q", tc.reason, e.UID, tc.reservation.UID)
			}
			again, _ := tc.page.take(&tc.reservation, Limit{Most: 5}, noon)
			if len(again.Added) > 0 {
				t.Errorf("%s: asked once more, it took %v again", tc.reason, again.Added)
			}
		})
	}
}

func TestTakeWithin(t *testing.T) {
	t.Parallel()
	limit := Limit{Most: 2, Within: 24 * time.Hour}
	at := func(hours ...int) []Item {
		var items []Item
		for i, h := range hours {
			items = append(items, Item{Target: i, Count: 1, At: noon.Add(time.Duration(h) * time.Hour)})
		}
		return items
	}
	tests := map[string]struct {
		reason string
		taken  []Item
		want   int
		ok     bool
	}{
		"Empty":       {"nothing else is there", nil, 0, true},
		"OneBefore":   {"two within a day", at(-5), 0, true},
		"TwoBefore":   {"three within the day that ends now", at(-5, -3), 0, false},
		"TwoAfter":    {"three within the day that begins now", at(3, 5), 0, false},
		"Between":     {"three within a day that began before and ends later", at(-10, 10), 0, false},
		"Apart":       {"no day holds both others with this one", at(-13, 13), 0, true},
		"ADayApart":   {"a day does not include its end", at(-24, -24), 0, true},
		"ADayAfter":   {"nor does it the other way round", at(24, 24), 0, true},
		"JustWithin":  {"an hour less than a day apart", at(-23, -23), 0, false},
		"LongAgo":     {"they have nothing to do with it", at(-100, -100), 0, true},
		"Rescheduled": {"the last one of the post itself moves away from two others", at(-3, -2), 48, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := Entries{"others": {Since: noon, Items: tc.taken}}
			if name == "Rescheduled" {
				page["new"] = &Entry{Since: noon, Items: at(0)}
			}
			got, _ := page.take(&Reservation{Post: "new", UID: "1", Items: at(tc.want)}, limit, noon)
			if ok := len(got.Refused) == 0; ok != tc.ok {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if e := page["new"]; tc.ok && (len(e.Items) != 1 || !e.Items[0].At.Equal(at(tc.want)[0].At)) {
				t.Errorf("%s: it holds %+v", tc.reason, e.Items)
			}
		})
	}
}

// Until a post exists, it is not known which of the requests under its key creates
// it.
func TestTimesThatWereAskedFor(t *testing.T) {
	t.Parallel()
	limit := Limit{Most: 3, Within: 24 * time.Hour}
	page := Entries{}
	ask := func(by string, uid types.UID, at time.Time) Answer {
		answer, _ := page.take(&Reservation{Post: "p", By: by, UID: uid, Items: []Item{{Count: 1, At: at}}}, limit, noon)
		return answer
	}
	for _, step := range []struct {
		reason string
		by     string
		uid    types.UID
		at     time.Time
		added  int
		used   int
	}{
		{"the first request", "a", "", noon, 1, 1},
		{"the same, sent again: it is to be published at once, and that is later now", "b", "", noon.Add(5 * time.Second), 0, 1},
		{"another body, under the same key", "c", "", noon.Add(3 * time.Hour), 1, 2},
		{"the first has created the post, which is delivered", "", "1", noon, 0, 1},
		{"its time was changed before its claim", "", "1", noon.Add(9 * time.Hour), 1, 1},
	} {
		answer := ask(step.by, step.uid, step.at)
		if len(answer.Added) != step.added || len(answer.Refused) > 0 || page.Used() != step.used {
			t.Errorf("%s: %+v, and %d are used; want %d added and %d used", step.reason, answer, page.Used(), step.added, step.used)
		}
	}
}

func TestReduceAndForget(t *testing.T) {
	t.Parallel()
	e := &Entry{UID: "1", Since: noon, Items: some(5, 1, 2), Earlier: some(3)}
	keep := map[int]int{0: 2, 1: 0, 2: 7}
	if !e.Reduce(func(target int) int { return keep[target] }) {
		t.Error("nothing changed, although two of three targets take less now")
	}
	want := []Item{{Target: 0, Count: 2, At: noon}, {Target: 2, Count: 2, At: noon}}
	if diff := cmp.Diff(want, e.Items); diff != "" {
		t.Errorf("a target never takes more than it was given, and one that takes nothing is not listed:\n%s", diff)
	}
	if e.Reduce(func(target int) int { return keep[target] }) {
		t.Error("a second time, it changed again")
	}
	page := Entries{"a": e, "b": {Items: []Item{{Count: 1, At: noon.Add(time.Hour)}}}}
	if page.Forget(noon) {
		t.Error("it forgot what is not past yet")
	}
	if !page.Forget(noon.Add(time.Minute)) || len(page) != 1 || page.Used() != 1 {
		t.Errorf("it kept what is past, or forgot what is to come: %+v", page)
	}
}
