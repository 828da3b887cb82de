// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// cluster is the state of the Kubernetes API.
type cluster struct {
	post      v1alpha1.Post
	team      *v1alpha1.Team
	namespace *metav1.PartialObjectMetadata
	status    int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := map[string]any{
		"/apis/social.herald.dev/v1alpha1/namespaces/team-acme/posts/p": &c.post,
		"/api/v1/namespaces/team-acme":                                  c.namespace,
	}
	list := v1alpha1.TeamList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TeamList"}}
	if c.team != nil {
		list.Items = append(list.Items, *c.team)
	}
	of["/apis/social.herald.dev/v1alpha1/teams"] = &list
	found, ok := of[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case c.status != 0:
		w.WriteHeader(c.status)
		found = metav1.Status{Status: metav1.StatusFailure, Code: int32(c.status)}
	case !ok || found == (*metav1.PartialObjectMetadata)(nil):
		w.WriteHeader(http.StatusNotFound)
		found = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(found)
}

func TestShutdownTimeout(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(-d))) }
	sent := func(c *cluster) { c.post.Status.Targets = []v1alpha1.TargetStatus{{Attempt: &v1alpha1.Attempt{}}} }
	keyed := func(since time.Duration) func(*cluster) {
		return func(c *cluster) {
			c.post.Annotations, c.post.CreationTimestamp = map[string]string{v1alpha1.RequestAnnotation: "f"}, *ago(since)
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(c *cluster)
		deleted *metav1.Time
		options Options
		kind    string
		stays   bool
		fails   bool
	}{
		"Sent":          {reason: "its record may have to be written", change: sent, deleted: ago(time.Minute), stays: true},
		"Finished":      {reason: "finished posts need a record, even if they were not sent", change: func(c *cluster) { c.post.Status.Finished = true }, deleted: ago(time.Minute), stays: true},
		"Keyed":         {reason: "a client that repeats its request gets the same post for a day", change: keyed(time.Hour), deleted: ago(time.Minute), stays: true},
		"KeyOver":       {reason: "the key has expired", change: keyed(25 * time.Hour), deleted: ago(time.Minute)},
		"NotSent":       {reason: "an unsent post does not leave a record", deleted: ago(time.Minute)},
		"Recorded":      {reason: "the post is not deleted, and keeps its finalizer", change: sent},
		"JustBefore":    {reason: "the manager would wait as well", change: sent, deleted: ago(time.Hour - time.Second), stays: true},
		"AfterAnHour":   {reason: "the manager would release the post, too, so an uninstall ends", change: sent, deleted: ago(time.Hour)},
		"Accepted":      {reason: "the administrator accepts the loss", change: sent, deleted: ago(time.Minute), options: Options{WithoutRecords: true}},
		"NamespaceEnds": {reason: "the promise ends with the namespace", change: func(c *cluster) { sent(c); c.namespace.DeletionTimestamp = ago(time.Minute) }, deleted: ago(time.Minute)},
		"NamespaceGone": {reason: "the promise ends with the namespace", change: func(c *cluster) { sent(c); c.namespace = nil }, deleted: ago(time.Minute)},
		"NoTeam":        {reason: "records belong to Teams", change: func(c *cluster) { sent(c); c.team = nil }, deleted: ago(time.Minute)},
		"OtherTeam":     {reason: "the namespace belongs to another team", change: func(c *cluster) { sent(c); c.team.Spec.Namespace = "team-beta" }, deleted: ago(time.Minute)},
		"TeamGoes":      {reason: "the records of a deleted team are deleted with it", change: func(c *cluster) { sent(c); c.team.DeletionTimestamp = ago(time.Minute) }, deleted: ago(time.Minute)},
		"Media":         {reason: "media files do not have records", kind: "media", change: sent, deleted: ago(time.Minute)},
		"Forbidden":     {reason: "the loss would be unknown", change: func(c *cluster) { sent(c); c.status = http.StatusForbidden }, deleted: ago(time.Minute), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{
				post: v1alpha1.Post{
					TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "team-acme", Name: "p"},
				},
				team: &v1alpha1.Team{
					TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Team"},
					ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{Namespace: "team-acme"},
				},
				namespace: &metav1.PartialObjectMetadata{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: "team-acme"},
				},
			}
			if tc.change != nil {
				tc.change(c)
			}
			server := httptest.NewServer(c)
			t.Cleanup(server.Close)
			options := tc.options
			options.Config, options.Clock = &rest.Config{Host: server.URL}, clocktesting.NewFakePassiveClock(now)
			r, err := newRun(t.Context(), options)
			must.Succeed(t, err)
			of := kind{resource: posts}
			if tc.kind != "" {
				of.resource = tc.kind
			}
			err = r.checkRecorded(t.Context(), of, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-acme", Name: "p", DeletionTimestamp: tc.deleted}})
			if stays := errors.As(err, new(*unrecorded)); stays != tc.stays || (err != nil) != (tc.stays || tc.fails) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
