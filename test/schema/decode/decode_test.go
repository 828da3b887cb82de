// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// subject is a sample with its kind's definition.
type subject struct {
	sample
	*definition
	original map[string]any
}

func subjects(tb testing.TB) []subject {
	tb.Helper()
	definitions := map[string]*definition{}
	var list []subject
	for _, s := range samples(tb) {
		if definitions[s.plural] == nil {
			definitions[s.plural] = load(tb, s.plural)
		}
		data, err := json.Marshal(s.object)
		must.Succeed(tb, err)
		one := subject{sample: s, definition: definitions[s.plural]}
		if one.original, err = one.create(tb.Context(), data); err != nil {
			tb.Fatalf("the sample %s is not admitted: %v", s.name, err)
		}
		list = append(list, one)
	}
	return list
}

// try changes the sample as the bytes determine: only at the given path or, if it is empty, anywhere. It returns the
// changed paths and whether the result was admitted. It is an error if an admitted object cannot be decoded.
func (s *subject) try(t *testing.T, only string, decisions []byte) (changed []string, admitted bool) {
	t.Helper()
	c := &changer{entropy: &entropy{bytes: decisions}, only: only}
	data, err := json.Marshal(c.change(s.schema, s.original, ""))
	must.Succeed(t, err)
	stored, err := s.create(t.Context(), data)
	if err != nil {
		return c.changed, false
	}
	wire, err := json.Marshal(stored)
	must.Succeed(t, err)
	typed := s.decode()
	unknown, err := kjson.UnmarshalStrict(wire, typed)
	if err != nil {
		t.Fatalf("admitted, but the Go type cannot read it: %v\n%s", err, wire)
	}
	if len(unknown) > 0 {
		t.Fatalf("admitted, but the Go type lacks fields: %v\n%s", unknown, wire)
	}
	written, err := json.Marshal(typed)
	if err != nil {
		t.Fatalf("admitted and read, but it cannot be written: %v\n%s", err, wire)
	}
	if _, err := s.create(t.Context(), written); err != nil {
		t.Fatalf("rejected after being read and written: %v\n%s\n%s", err, wire, written)
	}
	if err := s.writeStatus(t.Context(), wire, written); err != nil {
		t.Fatalf("a status was rejected after being read and written: %v\n%s\n%s", err, wire, written)
	}
	return c.changed, true
}

// leaves yields the paths of a schema's scalar values in order, each with the value's format.
func leaves(s *schema.Structural, path string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { walk(s, path, yield) }
}

func walk(s *schema.Structural, path string, yield func(string, string) bool) bool {
	switch s.Type {
	case "object":
		for _, name := range names(s.Properties) {
			property := s.Properties[name]
			if !walk(&property, path+"."+name, yield) {
				return false
			}
		}
		return true
	case "array":
		return walk(s.Items, path+"[]", yield)
	default:
		format := ""
		if s.ValueValidation != nil {
			format = s.ValueValidation.Format
		}
		return yield(path, format)
	}
}

func TestAdmittedObjectsDecode(t *testing.T) {
	all := subjects(t)
	reached := map[string]map[string]bool{}
	for i := range all {
		s := &all[i]
		if reached[s.plural] == nil {
			reached[s.plural] = map[string]bool{}
		}
		s.rounds(t, "", 200, reached[s.plural])
		for path, format := range leaves(s.schema, "") {
			switch {
			case s.plural == "posts" && s.name != "tree" && strings.HasPrefix(path, ".status"):
				// The tree has the most complete status; the other samples add nothing.
			case format == "date-time": // this project's type, and metav1.Time
				s.rounds(t, path, 60, reached[s.plural])
			default:
				s.rounds(t, path, 12, reached[s.plural])
			}
		}
	}
	for plural, paths := range reached {
		for path := range leaves(load(t, plural).schema, "") {
			if !paths[path] && changeable(path) {
				t.Errorf("%s: no other value was admitted at %s, so the test cannot fail", plural, path)
			}
		}
	}
}

// rounds changes the sample n times, with a fixed seed, and continues for a while if no change was admitted. It records
// the paths of the admitted changes.
func (s *subject) rounds(t *testing.T, path string, n int, reached map[string]bool) {
	t.Helper()
	source := rand.NewChaCha8(sha256.Sum256([]byte(s.name + path)))
	decisions := make([]byte, 1024)
	refused := false
	for i := 0; i < n || (changeable(path) && !reached[path] && path != "" && i < 20*n); i++ {
		if _, err := source.Read(decisions); err != nil {
			t.Fatal(err)
		}
		changed, admitted := s.try(t, path, decisions)
		if path != "" && len(changed) == 0 {
			return // this sample does not have the path
		}
		refused = refused || !admitted
		for _, at := range changed {
			reached[at] = reached[at] || admitted
		}
	}
	if !refused && path == "" {
		t.Errorf("%s: no value was rejected, so the test cannot fail", s.name)
	}
}

// changeable reports whether a different value can be admitted at the path.
func changeable(path string) bool {
	switch path {
	case ".apiVersion", ".kind": // set by Kubernetes
		return false
	case ".status.targets[].cards[].index", ".spec.permissions[]": // the rules permit one value only
		return false
	default:
		return !strings.HasPrefix(path, ".metadata")
	}
}

func FuzzWhatIsAdmittedDecodes(f *testing.F) {
	all := subjects(f)
	for i := range all {
		f.Add(uint8(i), []byte(nil))
		f.Add(uint8(i), bytes.Repeat([]byte{1, 0, 7, 255, 24}, 100))
	}
	f.Fuzz(func(t *testing.T, which uint8, decisions []byte) {
		all[int(which)%len(all)].try(t, "", decisions)
	})
}

func FuzzTime(f *testing.F) {
	for _, value := range []string{
		"2026-12-01T09:00:00Z", "2026-12-01T09:00:00.123456789+02:00", "1000-01-01T00:00:00Z", "1000-01-01T00:00:00+00:01",
		"2999-12-31T23:59:59.999999999Z", "2999-12-31T23:59:59-00:01", "1100-01-01T00:00:00+23:59", "2899-12-31T23:59:59-23:59",
		"2026-02-30T00:00:00Z", "2026-12-31T23:59:60Z", "2026-12-01t09:00:00z", "0001-01-01T00:00:00Z", "", "tomorrow",
	} {
		f.Add(value)
	}
	posts := load(f, "posts")
	post := func(at json.RawMessage) []byte {
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Post","metadata":{"name":"a"},"spec":{"category":"text","scheduledAt":%s,`+
			`"targets":[{"caption":"c","connectionRef":{"name":"x"}}]}}`, v1alpha1.GroupVersion, at)
	}
	f.Fuzz(func(t *testing.T, value string) {
		quoted, err := json.Marshal(value)
		must.Succeed(t, err)
		if _, err := posts.create(t.Context(), post(quoted)); err != nil {
			return
		}
		var read, again v1alpha1.Time
		if err := json.Unmarshal(quoted, &read); err != nil {
			t.Fatalf("%q is admitted and cannot be read: %v", value, err)
		}
		written, err := json.Marshal(read)
		must.Succeed(t, err)
		if _, err := posts.create(t.Context(), post(written)); err != nil {
			t.Fatalf("%q is admitted and written as %s, which is rejected: %v", value, written, err)
		}
		must.Succeed(t, json.Unmarshal(written, &again))
		if want := v1alpha1.NewTime(read.Time); !again.Equal(&want) {
			t.Fatalf("%q became %s", value, written)
		}
	})
}

// Limits on the memory that the rules allocate in the API server, in KiB, for the two writes that deliver a post to two
// accounts. Allocation accounts for most of their CPU time and, unlike that time, is nearly the same on every machine.
// The rules allocate 326 and 448, or 450 when other tests run at the same time. At 426 and 570, they accounted for a
// quarter of the API server's cost of a status write.
const (
	mostOfClaim  = 330
	mostOfRecord = 455
)

// claimedPost returns a text post to two accounts with claimed attempts.
func claimedPost() *v1alpha1.Post {
	post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: &at}}
	post.TypeMeta, post.ObjectMeta = meta("Post")
	post.Status = v1alpha1.PostStatus{Conditions: conditions, ObservedGeneration: 1, Phase: v1alpha1.PhaseProcessing, Platforms: "x"}
	for i := range 2 {
		name := fmt.Sprintf("connection-%d", i)
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: "A text."})
		post.Status.Targets = append(post.Status.Targets, v1alpha1.TargetStatus{
			Index: int32(i), Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing, Reason: v1alpha1.ReasonProcessing, TryUntil: &at,
			Attempt: &v1alpha1.Attempt{Number: 1, ID: name, StartedAt: at, SendBefore: at, ContentHash: hash, AccountID: "1"},
		})
	}
	return post
}

func TestRulesCostLittle(t *testing.T) {
	claimed := claimedPost()
	scheduled, posted := claimed.DeepCopy(), claimed.DeepCopy()
	scheduled.Status.Phase, posted.Status.Phase = v1alpha1.PhaseScheduled, v1alpha1.PhasePosted
	posted.Status.Conditions = append([]metav1.Condition{}, conditions...)
	for i := range posted.Status.Targets {
		scheduled.Status.Targets[i] = v1alpha1.TargetStatus{Index: int32(i), Phase: v1alpha1.PhaseScheduled}
		target := &posted.Status.Targets[i]
		target.Phase, target.ExternalID, target.PostedAt, target.Attempt.Outcome = v1alpha1.PhasePosted, "7", &at, v1alpha1.OutcomePosted
	}
	d := load(t, "posts")
	for _, write := range []struct {
		name     string
		from, to *v1alpha1.Post
		most     uint64
	}{
		{"the claim", scheduled, claimed, mostOfClaim},
		{"the record", claimed, posted, mostOfRecord},
	} {
		if kib := d.allocated(t, write.from, write.to) >> 10; kib > write.most*overhead {
			t.Errorf("for %s the rules allocate %d KiB, more than %d", write.name, kib, write.most)
		} else {
			t.Logf("for %s the rules allocate %d KiB", write.name, kib)
		}
	}
}

// allocated returns the number of bytes that the rules allocate for one status write.
func (d *definition) allocated(t *testing.T, from, to *v1alpha1.Post) uint64 {
	t.Helper()
	var objects [2]map[string]any
	for i, post := range []*v1alpha1.Post{from, to} {
		data, err := json.Marshal(post)
		must.Succeed(t, err)
		if objects[i], err = d.prepare(data); err != nil {
			t.Fatal(err)
		}
	}
	const writes = 20
	var before, after runtime.MemStats
	for i := range writes + 1 {
		if i == 1 { // the first write fills pools
			runtime.ReadMemStats(&before)
		}
		if errs, _ := d.rules.Validate(t.Context(), nil, d.schema, objects[1], objects[0], celconfig.RuntimeCELCostBudget); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / writes
}
