// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/internal/media/store"
)

// requestVersion is the form of a Request.
const requestVersion = 1

// maxRequest is how many bytes a Request may have that is read: it has some hundreds.
const maxRequest = 4 << 10

// Request is what is kept of a request under an Idempotency-Key whose object is gone, and
// whose key holds all the same. The name of the object follows from the key.
type Request struct {
	Version int `json:"version"`
	// UID is that of the object.
	UID types.UID `json:"uid"`
	// Fingerprint tells requests under the same key apart by what they ask for.
	Fingerprint string `json:"fingerprint"`
}

func (t Team) requests() string { return t.Prefix() + "requests/" }

func (t Team) request(name string) string { return t.requests() + fileOf(name) }

// PutRequest keeps what created the object of a name.
func (a *Archive) PutRequest(ctx context.Context, team Team, name string, r Request) error {
	r.Version = requestVersion
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot write down the request of %s/%s: %w", team.Namespace, name, err)
	}
	if err := a.write(ctx, team.request(name), data, store.Any); err != nil {
		return explain(fmt.Sprintf("cannot keep the request of %s/%s", team.Namespace, name), err)
	}
	return nil
}

// Request returns what created the object of a name that is gone, or ErrNotFound.
func (a *Archive) Request(ctx context.Context, team Team, name string) (Request, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, _, err := a.store.ReadDocument(ctx, team.request(name), "", maxRequest)
	if err != nil {
		return Request{}, explain(fmt.Sprintf("cannot read the request of %s/%s", team.Namespace, name), err)
	}
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return Request{}, fmt.Errorf("cannot read the request of %s/%s: %w", team.Namespace, name, err)
	}
	if r.Version != requestVersion {
		return Request{}, fmt.Errorf("the request of %s/%s has the form %d, and this version of Herald knows form %d: use a newer version",
			team.Namespace, name, r.Version, requestVersion)
	}
	return r, nil
}

// ExpireRequests removes the requests of a team that were kept before a time, and returns how
// many.
func (a *Archive) ExpireRequests(ctx context.Context, team Team, before time.Time) (removed int, err error) {
	if a.Absent() {
		return 0, nil
	}
	var failed faults
	for object, err := range a.store.List(ctx, team.requests()) {
		switch {
		case err != nil:
			return removed, explain("cannot list the requests of team "+team.Name, err)
		case !object.ModifiedAt.Before(before):
			continue
		}
		if err := a.store.Delete(ctx, object.Key); err != nil {
			failed.add(err)
		} else {
			removed++
		}
		if failed.many() {
			break
		}
	}
	if err := failed.err(); err != nil {
		return removed, explain("cannot remove requests of team "+team.Name, err)
	}
	return removed, nil
}
