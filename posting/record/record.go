// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record is what outlives a post: a small document that says what became of each
// of its targets. It is kept in the bucket by team and name, so that a post that comes
// back under its name, after its object was deleted, is not published twice, and can be
// read as it was. The package is pure: it makes records of posts, joins them, and enters
// them into posts.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Version is that of the form. A reader refuses a newer one, which it does not understand
// whole: to guess might publish twice.
const Version = 1

// Record is what is kept of a post.
type Record struct {
	// Version is the form of this record.
	Version int `json:"version"`
	// Namespace, Team and Name are under which it is found.
	Namespace string `json:"namespace"`
	Team      string `json:"team"`
	Name      string `json:"name"`
	// UID and Generation are those of the post's last object.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation,omitempty"`
	// CreatedAt is when that object was created.
	CreatedAt v1alpha1.Time `json:"createdAt"`
	// FinishedAt is when nothing was left to be done; nil for a post that was deleted
	// before.
	FinishedAt *v1alpha1.Time `json:"finishedAt,omitempty"`
	// Underway is set of a post that was being delivered when this was written: what stands here
	// as not sent yet may have been sent since.
	Underway bool `json:"underway,omitempty"`
	// Phase sums the post up.
	Phase v1alpha1.PostPhase `json:"phase"`
	// Labels and Annotations are those that Herald reads.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec is what was asked for.
	Spec v1alpha1.PostSpec `json:"spec"`
	// Targets is what became of the targets of Spec, in its order; none of a post of which no
	// target was begun.
	Targets []Target `json:"targets,omitempty"`
	// Before is what became of targets of earlier posts of the name that Spec does not have
	// any more.
	Before []Target `json:"before,omitempty"`
	// Earlier are the uids of earlier objects of the name, oldest first.
	Earlier []types.UID `json:"earlier,omitempty"`
}

// Target is what became of a target: its entry without what is of use to a delivery alone.
type Target struct {
	v1alpha1.TargetStatus
	// Connection is the name of the target's Connection.
	Connection string `json:"connection,omitempty"`
	// AccountID is the platform's id of the account; empty if it is not known.
	AccountID string `json:"accountID,omitempty"`
}

// mostEarlier bounds the uids that are kept.
const mostEarlier = 20

// annotations are those that are kept: answers of the API show them, or rest on them.
var annotations = []string{
	v1alpha1.BornAnnotation, v1alpha1.RequestAnnotation, v1alpha1.AuthorAnnotation, v1alpha1.LastAuthorAnnotation,
	v1alpha1.AgentAnnotation, v1alpha1.WantedAtAnnotation,
}

// Account returns the platform and the id of the account that a Connection names; false
// if there is no such Connection.
type Account func(connection string) (platform v1alpha1.Platform, id string, ok bool)

// New makes the record of a post as it stands. account tells about targets whose attempt does
// not say it.
func New(post *v1alpha1.Post, team string, account Account) *Record {
	r := &Record{
		Version: Version, Namespace: post.Namespace, Team: team, Name: post.Name, UID: post.UID, Generation: post.Generation,
		CreatedAt: v1alpha1.NewTime(post.CreationTimestamp.Time), FinishedAt: post.Status.FinishedAt, Underway: Underway(post), Phase: posting.PhaseOf(post),
		Labels: map[string]string{}, Annotations: map[string]string{}, Spec: *post.Spec.DeepCopy(),
	}
	if origin := post.Labels[v1alpha1.OriginLabel]; origin != "" {
		r.Labels[v1alpha1.OriginLabel] = origin
	}
	for _, key := range annotations {
		if value := post.Annotations[key]; value != "" {
			r.Annotations[key] = value
		}
	}
	for _, i := range places(post) {
		r.Targets = append(r.Targets, targetOf(post, i, account))
	}
	for i := range r.Targets {
		r.fillAccount(&r.Targets[i])
	}
	return r
}

// WriteTimeout is how long after its deletion a post waits at least for its record to be kept.
// If the store has not answered for as long then, it goes without one.
const WriteTimeout = time.Hour

// Required reports whether a post must leave a record: a call may have been made for it, also
// one that only a person can tell about, or it is finished.
func Required(post *v1alpha1.Post) bool {
	return posting.Started(post) || post.Status.Finished || slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		return attempt.Undecided(&t)
	})
}

// Underway reports whether more may be sent for a post of which something was, or may have been.
func Underway(post *v1alpha1.Post) bool {
	return post.DeletionTimestamp.IsZero() && !post.Status.Finished && Required(post) && !posting.AllSettled(post)
}

// places are the targets of a post that are kept: none as long as nothing became of any, and
// then all of them in their order. The turn of a target among equals is that among the targets
// of the post, while its entries are in the order in which they came into being: what is
// adopted comes first. Entries of targets that an edit took out follow.
func places(post *v1alpha1.Post) []int {
	var all []int
	if len(post.Status.Targets) == 0 {
		return nil
	}
	for i := range post.Spec.Targets {
		all = append(all, i)
	}
	for i := range post.Status.Targets {
		if index := int(post.Status.Targets[i].Index); index >= len(post.Spec.Targets) {
			all = append(all, index)
		}
	}
	return all
}

// targetOf is what is kept of a target.
func targetOf(post *v1alpha1.Post, i int, account Account) Target {
	kept := Target{TargetStatus: v1alpha1.TargetStatus{Index: int32(i)}} //nolint:gosec // a post has at most 100 targets
	if t := posting.Target(post, i); t != nil {
		kept.TargetStatus = *t.DeepCopy()
	}
	t := &kept.TargetStatus
	kept.State = posting.StateOf(t)
	kept.Prepared, kept.NextTryAt, kept.TryUntil = nil, nil, nil
	kept.Candidates, kept.AnswerProblem = nil, ""
	if i < len(post.Spec.Targets) {
		kept.Connection = post.Spec.Targets[i].ConnectionRef.Name
	}
	if kept.Attempt != nil {
		// Of use to the call alone.
		kept.Attempt.Checkpoint, kept.Attempt.ContentHash = "", ""
		kept.AccountID = kept.Attempt.AccountID
	}
	// What a person has told of has an attempt, and no account if the platform did not confirm it.
	if platform, id, ok := account(kept.Connection); ok && kept.AccountID == "" {
		kept.Platform, kept.AccountID = platform, id
	}
	return kept
}

// fillAccount takes the account of a target whose Connection is gone from another one of
// the same Connection.
func (r *Record) fillAccount(t *Target) {
	for i := range r.Targets {
		if other := &r.Targets[i]; t.AccountID == "" && other.AccountID != "" && other.Connection == t.Connection {
			t.Platform, t.AccountID = other.Platform, other.AccountID
		}
	}
}

// Post returns the post as it was, as far as it is kept: what reads posts reads it in the
// same way.
func (r *Record) Post() *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, UID: r.UID, Generation: r.Generation,
			CreationTimestamp: metav1.NewTime(r.CreatedAt.Time), Labels: maps.Clone(r.Labels), Annotations: maps.Clone(r.Annotations),
		},
		Spec: *r.Spec.DeepCopy(),
		Status: v1alpha1.PostStatus{
			ObservedGeneration: r.Generation, Phase: r.Phase, Finished: r.FinishedAt != nil, FinishedAt: r.FinishedAt,
		},
	}
	if r.FinishedAt != nil {
		post.Status.FinishedOn = r.FinishedAt.UTC().Format("2006-01-02")
	}
	if r.Phase == v1alpha1.PhaseCancelled {
		post.Status.CancelledAt = r.FinishedAt
	}
	var platforms []string
	for i := range r.Targets {
		t := r.Targets[i].DeepCopy()
		post.Status.Targets = append(post.Status.Targets, *t)
		if name := string(t.Platform); name != "" && !slices.Contains(platforms, name) {
			platforms = append(platforms, name)
		}
	}
	post.Status.Platforms = strings.Join(platforms, ",")
	return post
}

// Encode writes a record. Equal records are written as the same bytes.
func (r *Record) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("cannot write the record of post %q: %w", r.Name, err)
	}
	return b.Bytes(), nil
}

// Decode reads a record. One that is of a newer form, or that lacks whose it is, is an
// error.
func Decode(data []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("it is no record of a post: %w", err)
	}
	switch {
	case r.Version > Version:
		return nil, fmt.Errorf("it has the form %d, and this version of Herald knows forms up to %d: use a newer version", r.Version, Version)
	case r.Version < 1 || r.Name == "" || r.Namespace == "" || r.UID == "":
		return nil, fmt.Errorf("it does not say of which post it is")
	}
	return &r, nil
}
