// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
)

const (
	// inTransaction is the number of posts per transaction; etcd allows 128 operations.
	inTransaction = 100
	// etcdDial is the timeout for connecting to etcd.
	etcdDial = 10 * time.Second
	// etcdTries is the maximum number of attempts at a transaction. Each takes seconds until etcd returns an error.
	etcdTries = 10
	// knownLimit is the timeout for the API server's cache to contain the stored posts.
	knownLimit = 10 * time.Minute
)

// StorePosts stores posts directly in etcd in the API server's format, so the API server serves them like any others.
// This is many times faster than creating each post and writing its status, and none of the benchmarks that use it
// measures creation. Posts need a name, a UID, a creation time and a type. StorePosts returns once the API server's
// cache contains all of them, since listing them would wait until then.
func (s *Stack) StorePosts(ctx context.Context, posts int, post func(i int) *v1alpha1.Post) (*StoredPosts, error) {
	p := &StoredPosts{stack: s, keys: make([]string, posts)}
	err := p.each(ctx, func(from, to int) ([]clientv3.Op, error) {
		var puts []clientv3.Op
		for i := from; i < to; i++ {
			object := post(i)
			data, err := json.Marshal(object)
			if err != nil {
				return nil, err
			}
			p.keys[i] = "/registry/" + v1alpha1.GroupVersion.Group + "/posts/" + object.Namespace + "/" + object.Name
			puts = append(puts, clientv3.OpPut(p.keys[i], string(data)))
		}
		return puts, nil
	})
	if err == nil {
		err = p.awaitKnown(ctx)
	}
	return p, err
}

// awaitKnown waits until the API server's cache of posts contains the last write. It lists a namespace without posts at
// that version, which the API server serves from its cache or not at all.
func (p *StoredPosts) awaitKnown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	options := &client.ListOptions{Namespace: metav1.NamespaceDefault, Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatInt(p.revision.Load(), 10)}}
	for {
		err := p.stack.Kubernetes.List(ctx, &v1alpha1.PostList{}, options)
		if err == nil || !apierrors.IsTimeout(err) || ctx.Err() != nil {
			return err
		}
	}
}

// StoredPosts are posts that StorePosts has stored.
type StoredPosts struct {
	stack *Stack
	keys  []string
	// revision is etcd's revision after the last transaction.
	revision atomic.Int64
}

// Remove deletes the posts from etcd.
func (p *StoredPosts) Remove(ctx context.Context) error {
	return p.each(ctx, func(from, to int) ([]clientv3.Op, error) {
		var deletes []clientv3.Op
		for _, key := range p.keys[from:to] {
			deletes = append(deletes, clientv3.OpDelete(key))
		}
		return deletes, nil
	})
}

// each commits transactions, each for a batch of the posts.
func (p *StoredPosts) each(ctx context.Context, operations func(from, to int) ([]clientv3.Op, error)) (err error) {
	etcd, err := p.stack.etcdClient()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for from := 0; from < len(p.keys); from += inTransaction {
		group.Go(func() error {
			ops, err := operations(from, min(from+inTransaction, len(p.keys)))
			if err == nil {
				err = p.commit(ctx, etcd, ops)
			}
			if err != nil {
				return fmt.Errorf("write posts to etcd: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// commit retries if etcd is too busy. Repeated writes have the same effect as a single one.
func (p *StoredPosts) commit(ctx context.Context, etcd *clientv3.Client, ops []clientv3.Op) error {
	for try := 1; ; try++ {
		answer, err := etcd.Txn(ctx).Then(ops...).Commit()
		if err == nil {
			for last := p.revision.Load(); last < answer.Header.Revision; last = p.revision.Load() {
				p.revision.CompareAndSwap(last, answer.Header.Revision)
			}
			return nil
		}
		if try == etcdTries || ctx.Err() != nil {
			return err
		}
	}
}

func (s *Stack) etcdClient() (*clientv3.Client, error) {
	config, err := s.Setup.TLSConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.Setup.Address(processes.Etcd)}, DialTimeout: etcdDial, TLS: config})
}

// StoredBytes returns the size of etcd's data without its history, in bytes.
func (s *Stack) StoredBytes(ctx context.Context) (bytes int64, err error) {
	etcd, err := s.etcdClient()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	now, err := etcd.Get(ctx, "any", clientv3.WithSerializable())
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its revision: %w", err)
	}
	if _, err := etcd.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return 0, fmt.Errorf("drop the history: %w", err)
	}
	status, err := etcd.Status(ctx, etcd.Endpoints()[0])
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its size: %w", err)
	}
	return status.DbSizeInUse, nil
}
