// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/pki"
)

const (
	// inTransaction is how many posts are written at once; etcd admits 128 operations.
	inTransaction = 100
	// etcdDial bounds how long a connection to etcd may take.
	etcdDial = 10 * time.Second
	// etcdTries is how often a transaction is tried. Each try waits until etcd gives up, which takes seconds.
	etcdTries = 10
)

// Plant stores posts in etcd as the API server stores them, which then tells of them as of any other. It is many times as
// quick as creating each and writing its status, and nothing here measures how posts are created. Posts need a name, a
// UID, a creation time and a type.
func (s *Stack) Plant(ctx context.Context, posts int, post func(i int) *v1alpha1.Post) (*Planted, error) {
	p := &Planted{stack: s, keys: make([]string, posts)}
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
	return p, err
}

// Planted are posts that were stored by Plant.
type Planted struct {
	stack *Stack
	keys  []string
}

// Remove takes the posts out again.
func (p *Planted) Remove(ctx context.Context) error {
	return p.each(ctx, func(from, to int) ([]clientv3.Op, error) {
		var deletes []clientv3.Op
		for _, key := range p.keys[from:to] {
			deletes = append(deletes, clientv3.OpDelete(key))
		}
		return deletes, nil
	})
}

// each commits transactions that each concern some of the posts.
func (p *Planted) each(ctx context.Context, operations func(from, to int) ([]clientv3.Op, error)) (err error) {
	client, err := p.stack.etcdClient()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for from := 0; from < len(p.keys); from += inTransaction {
		group.Go(func() error {
			ops, err := operations(from, min(from+inTransaction, len(p.keys)))
			if err == nil {
				err = commit(ctx, client, ops)
			}
			if err != nil {
				return fmt.Errorf("write posts to etcd: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// commit tries again when etcd is too busy: what is written twice is the same.
func commit(ctx context.Context, client *clientv3.Client, ops []clientv3.Op) error {
	for try := 1; ; try++ {
		_, err := client.Txn(ctx).Then(ops...).Commit()
		if err == nil || try == etcdTries || ctx.Err() != nil {
			return err
		}
	}
}

func (s *Stack) etcdClient() (*clientv3.Client, error) {
	authority, err := os.ReadFile(pki.CA(s.pki()))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the authority's certificate cannot be read")
	}
	certificate, err := tls.LoadX509KeyPair(pki.Cert(s.pki(), certEtcdClient), pki.Key(s.pki(), certEtcdClient))
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + s.address(portEtcd)}, DialTimeout: etcdDial,
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	})
}
