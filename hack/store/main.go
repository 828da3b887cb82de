// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command herald-store is the S3-compatible store for the local run and for trials in a cluster. It is the Versity
// gateway over two folders, one for the objects and one for their metadata, so it works on file systems without
// extended attributes. It has one root key and creates its bucket at startup.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The gateway requires explicit limits. These are far above what one user's machine needs.
const (
	maxConnections = 1024
	maxRequests    = 1024
	// maxParts is Amazon S3's limit for multipart uploads.
	maxParts = 10000
)

type options struct {
	listen, dataDir, credentials, bucket, region, corsOrigin string
	allowRemote                                              bool
}

// credentials is the root key from the file given by --credentials. It is not a flag, because every user of a machine
// can read command lines.
type credentials struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

func main() { os.Exit(start(os.Args[1:])) }

// start runs the store and returns the exit code: 2 for a usage error, 1 for other errors.
func start(args []string) int {
	opts, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "herald-store:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts); err != nil {
		slog.Error("the store ends", "error", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("herald-store", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:9000", "address to serve S3 on; a loopback address, unless --allow-remote")
	flags.BoolVar(&o.allowRemote, "allow-remote", false, "listen on any address: in a pod, where network policies say who may reach it")
	flags.StringVar(&o.dataDir, "data-dir", "", "folder that keeps the objects (required)")
	flags.StringVar(&o.credentials, "credentials", "", `JSON file with the root key: {"accessKey":"…","secretKey":"…"} (required)`)
	flags.StringVar(&o.bucket, "bucket", "herald-media", "bucket to create at the start")
	flags.StringVar(&o.region, "region", "us-east-1", "region that clients sign for")
	flags.StringVar(&o.corsOrigin, "cors-origin", "*", "origin that a browser may upload from")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.dataDir == "" || o.credentials == "" {
		return o, errors.New("--data-dir and --credentials are required")
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return o, fmt.Errorf("--listen %s: want HOST:PORT", o.listen)
	}
	if ip := net.ParseIP(host); !o.allowRemote && (ip == nil || !ip.IsLoopback()) {
		return o, fmt.Errorf("--listen %s: this store is for the local run and for trials. It listens on a loopback address such as "+
			"127.0.0.1:9000; in a pod, add --allow-remote", o.listen)
	}
	return o, nil
}

func run(ctx context.Context, o options) error {
	key, err := readCredentials(o.credentials)
	if err != nil {
		return err
	}
	gateway, err := openBackend(o.dataDir, o.bucket)
	if err != nil {
		return err
	}
	if err := ensureBucket(ctx, gateway, key.AccessKey, o.bucket); err != nil {
		return err
	}
	slog.Info("serving S3", "address", "http://"+o.listen, "bucket", o.bucket)
	return embedgw.RunVersityGW(ctx, gateway, &embedgw.Config{
		RootUserAccess:    key.AccessKey,
		RootUserSecret:    key.SecretKey,
		Region:            o.region,
		Ports:             []string{o.listen},
		MaxConnections:    maxConnections,
		MaxRequests:       maxRequests,
		MultipartMaxParts: maxParts,
		CORSAllowOrigin:   o.corsOrigin,
		HealthPath:        "/health",
		KeepAlive:         true,
		Quiet:             true,
	})
}

func readCredentials(path string) (credentials, error) {
	var key credentials
	data, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("read the root key: %w", err)
	}
	if err := json.Unmarshal(data, &key); err != nil {
		return key, fmt.Errorf("read the root key in %s: %w", path, err)
	}
	if key.AccessKey == "" || key.SecretKey == "" {
		return key, fmt.Errorf("%s must hold an accessKey and a secretKey", path)
	}
	return key, nil
}

// maxCopy is the largest file that can be copied within the store, as in Amazon S3. If it is not set, the gateway does
// not copy any file.
const maxCopy = 5 << 30

// openBackend opens the folders in dir. It first removes an empty bucket folder, which a kill may have left while the
// bucket was being created: the gateway could never start with it.
func openBackend(dir, bucket string) (*posix.Posix, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	objects, metadata := filepath.Join(dir, "objects"), filepath.Join(dir, "metadata")
	for _, d := range []string{objects, metadata} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("create the store's folder: %w", err)
		}
	}
	err = os.Remove(filepath.Join(objects, bucket))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("tidy the bucket's folder: %w", err)
	}
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return nil, fmt.Errorf("open the metadata in %s: %w", metadata, err)
	}
	gateway, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: metadata, CopyObjectThreshold: maxCopy})
	if err != nil {
		return nil, fmt.Errorf("open the objects in %s: %w", objects, err)
	}
	return gateway, nil
}

// bucketOwner is the context key that holds, for the gateway's backends, the account that creates a bucket.
const bucketOwner = "bucket-owner"

// ensureBucket creates the bucket for the root account if it does not exist.
func ensureBucket(ctx context.Context, gateway backend.Backend, owner, bucket string) error {
	acl, err := json.Marshal(auth.ACL{Owner: owner})
	if err != nil {
		return err
	}
	//nolint:revive,staticcheck // the backend reads the owner under this plain string
	ctx = context.WithValue(ctx, bucketOwner, auth.Account{Access: owner, Role: auth.RoleAdmin})
	_, err = gateway.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	if err == nil {
		return nil
	}
	err = gateway.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket:                    &bucket,
		CreateBucketConfiguration: &types.CreateBucketConfiguration{},
		ObjectOwnership:           types.ObjectOwnershipBucketOwnerEnforced,
	}, acl)
	if err != nil {
		return fmt.Errorf("create the bucket %s: %w", bucket, err)
	}
	return nil
}
