// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps media files in an S3-compatible store. It signs upload URLs, reads parts of files on the
// condition that they have not changed, and streams files in. It does not hold files in memory. It aborts a request if
// the store stalls or takes too long for the number of bytes; see TimeoutFor.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Errors about a file that callers check for.
var (
	// ErrNotFound is returned when the store has no such file.
	ErrNotFound = errors.New("the store has no such file")
	// ErrChanged is returned when a file's etag is not the requested one.
	ErrChanged = errors.New("the file was changed")
	// ErrNone is returned for every file by the Store that None returns.
	ErrNone = errors.New("this installation has no media store")
)

// Config configures access to the store.
type Config struct {
	// Endpoint is the store's host and port for this process.
	Endpoint string
	// PublicEndpoint is the host and port for uploads, by default Endpoint. A signature is valid for one host only.
	PublicEndpoint string
	// Region is the region that requests are signed for, by default us-east-1. Signing then needs no request for the
	// region.
	Region string
	// Bucket holds the files. It belongs to one installation of Herald.
	Bucket string
	// AccessKey and SecretKey are the credentials. If empty, credentials come from the environment (AWS_ACCESS_KEY_ID and
	// the like), the file ~/.aws/credentials, or the pod's or machine's identity, in this order, and are renewed in time.
	AccessKey, SecretKey string
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool
	// Insecure uses HTTP for Endpoint, PublicInsecure for PublicEndpoint, for a store on the same machine.
	Insecure, PublicInsecure bool
	// Transport carries the requests. Nil uses minio-go's own.
	Transport http.RoundTripper
	// Stall is how long the store may pause within a body before the request is aborted, by default DefaultStall.
	Stall time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// Object is the store's metadata about a file.
type Object struct {
	// Key identifies the file.
	Key string
	// Size is in bytes.
	Size int64
	// ETag identifies the content: different bytes have a different ETag.
	ETag string
	// ContentType is the type that the file was stored with. It is empty in listings.
	ContentType string
	// ModifiedAt is when the file was stored.
	ModifiedAt time.Time
	// Tags are the tags that PutTagged stored. They are nil in listings.
	Tags map[string]string
}

// Store is a bucket. It is safe for concurrent use.
type Store struct {
	core   *minio.Core
	public *minio.Client
	bucket string
	clock  clock.PassiveClock
	// none is true if there is no store; all requests return ErrNone.
	none bool
	// verified holds the files that cannot be overwritten, by key and etag; copying holds the copies in progress.
	verified *cache.LRUExpireCache
	copying  singleflight.Group
}

// New returns a Store. It does not send a request.
func New(c Config) (*Store, error) {
	if c.Endpoint == "" || c.Bucket == "" || (c.AccessKey == "") != (c.SecretKey == "") {
		return nil, errors.New("the media store needs an endpoint and a bucket, and an access key only together with its secret key")
	}
	if strings.Contains(c.Endpoint+c.PublicEndpoint, "/") {
		return nil, errors.New("the media store's endpoints must be a host and optionally a port, like s3.example.com:9000, without https://")
	}
	if c.PublicEndpoint == "" {
		c.PublicEndpoint, c.PublicInsecure = c.Endpoint, c.Insecure
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Stall <= 0 {
		c.Stall = DefaultStall
	}
	keys := c.credentials()
	options := func(insecure bool) (*minio.Options, error) {
		way := c.Transport
		if way == nil {
			var err error
			if way, err = minio.DefaultTransport(!insecure); err != nil {
				return nil, fmt.Errorf("cannot set up the transport to the media store: %w", err)
			}
		}
		lookup := minio.BucketLookupDNS
		if c.PathStyle {
			lookup = minio.BucketLookupPath
		}
		return &minio.Options{
			Creds: keys, Secure: !insecure, Region: c.Region,
			BucketLookup: lookup, Transport: &stallTimeout{next: way, stall: c.Stall}, MaxRetries: maxTries,
		}, nil
	}
	inside, err := options(c.Insecure)
	if err != nil {
		return nil, err
	}
	outside, err := options(c.PublicInsecure)
	if err != nil {
		return nil, err
	}
	core, err := minio.NewCore(c.Endpoint, inside)
	if err != nil {
		return nil, fmt.Errorf("cannot use the media store at %q: %w", c.Endpoint, err)
	}
	public, err := minio.New(c.PublicEndpoint, outside)
	if err != nil {
		return nil, fmt.Errorf("cannot use the media store's public address %q: %w", c.PublicEndpoint, err)
	}
	return &Store{
		core: core, public: public, bucket: c.Bucket, clock: c.Clock, verified: cache.NewLRUExpireCacheWithClock(remembered, c.Clock),
	}, nil
}

func (c *Config) credentials() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// None returns the Store for an installation without one. All operations return ErrNone, without sending requests.
func None() *Store {
	s, err := New(Config{Endpoint: "none.invalid", Bucket: "none", AccessKey: "none", SecretKey: "none", Transport: refusal{}})
	if err != nil {
		panic(err) // the configuration is the one above
	}
	s.none = true
	return s
}

type refusal struct{}

// RoundTrip returns ErrNone.
func (refusal) RoundTrip(*http.Request) (*http.Response, error) { return nil, ErrNone }

// maxTries limits how often a request is attempted; reconcilers and clients repeat the whole operation.
const maxTries = 3

// PresignPut returns a URL that accepts a file by PUT with exactly the given Content-Type and Content-Length, and the
// time when the URL expires. HTTP clients send a body's length if they know it.
func (s *Store) PresignPut(ctx context.Context, key, mimeType string, size int64) (url string, expires time.Time, err error) {
	if s.none {
		return "", time.Time{}, ErrNone
	}
	expires = s.clock.Now().Add(v1alpha1.UploadURLLifetime)
	signed := http.Header{"Content-Type": {mimeType}, "Content-Length": {strconv.FormatInt(size, 10)}}
	address, err := s.public.PresignHeader(ctx, http.MethodPut, s.bucket, key, v1alpha1.UploadURLLifetime, nil, signed)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("cannot sign an upload URL: %w", err)
	}
	return address.String(), expires, nil
}

// PresignGet returns a public URL with the given validity, for platforms that fetch files themselves. It serves
// whatever file is currently stored under key; see Verified.
func (s *Store) PresignGet(ctx context.Context, key string, valid time.Duration) (string, error) {
	if s.none {
		return "", ErrNone
	}
	address, err := s.public.PresignedGetObject(ctx, s.bucket, key, valid, nil)
	if err != nil {
		return "", fmt.Errorf("cannot sign a download URL: %w", err)
	}
	return address.String(), nil
}

// Stat returns the metadata of a file, or ErrNotFound.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	object, err := s.stat(ctx, key)
	if errors.Is(err, ErrNotFound) {
		err = s.missing(ctx, key)
	}
	return object, err
}

func (s *Store) stat(ctx context.Context, key string) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return Object{}, explain("cannot look at the file in the store", err)
	}
	return Object{Key: key, Size: info.Size, ETag: info.ETag, ContentType: info.ContentType, ModifiedAt: info.LastModified, Tags: tagsOf(info)}, nil
}

// missing distinguishes a missing file from a missing bucket: only a response to GET has a body with the code.
func (s *Store) missing(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	body, _, _, err := s.core.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return explain("cannot look at the file in the store", err)
	}
	_ = body.Close() // The file was created in the meantime; the next call finds it.
	return ErrNotFound
}

// Put streams a file of exactly the given size, in one request. It is stored completely or not at all.
func (s *Store) Put(ctx context.Context, key, mimeType string, size int64, body io.Reader) (Object, error) {
	return s.PutTagged(ctx, key, mimeType, size, body, nil)
}

// Delete removes a file. It is not an error if it is missing.
func (s *Store) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	if err := s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil {
		if err = explain("cannot remove the file from the store", err); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// List iterates over the files with the given prefix, in order. It stops at the first error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for info := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if info.Err != nil {
				yield(Object{}, explain("cannot list the files in the store", info.Err))
				return
			}
			if !yield(Object{Key: info.Key, Size: info.Size, ETag: info.ETag, ModifiedAt: info.LastModified}, nil) {
				return
			}
		}
	}
}

// explain maps the store's errors to those that callers distinguish. A missing bucket is a configuration error.
func explain(doing string, err error) error {
	switch response := minio.ToErrorResponse(err); {
	case response.Code == minio.NoSuchBucket:
		return fmt.Errorf("%s: the bucket does not exist: %w", doing, err)
	case response.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case response.StatusCode == http.StatusPreconditionFailed:
		return ErrChanged
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// Derived returns the key for a file made from the file under key, such as a rendition. It is deleted together with
// that file; see DeleteAll. The name consists of letters and digits. The key is a sibling of the file's key and not
// below it: some stores use folders on a disk.
func Derived(key, name string) string { return key + "." + name }

// Digest returns a name for Derived that is computed from what, so that it need not be stored.
func Digest(what string) string {
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:16])
}

// PutTagged is like Put, with tags, which Stat returns. Tag names are lower-case words.
func (s *Store) PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (Object, error) {
	info, err := s.core.Client.PutObject(ctx, s.bucket, key, body, size, minio.PutObjectOptions{
		ContentType: mimeType, DisableMultipart: true, UserMetadata: tags,
	})
	if err != nil {
		return Object{}, explain("cannot put the file into the store", err)
	}
	return Object{Key: key, Size: info.Size, ETag: info.ETag, ContentType: mimeType, ModifiedAt: s.clock.Now(), Tags: tags}, nil
}

// DeleteAll removes a file and the files derived from it.
func (s *Store) DeleteAll(ctx context.Context, key string) error {
	problems := []error{s.Delete(ctx, key)}
	for object, err := range s.List(ctx, Derived(key, "")) {
		if err != nil {
			problems = append(problems, fmt.Errorf("cannot list the copies made of the file: %w", err))
			break
		}
		problems = append(problems, s.Delete(ctx, object.Key))
	}
	return errors.Join(problems...)
}

func tagsOf(info minio.ObjectInfo) map[string]string {
	if len(info.UserMetadata) == 0 {
		return nil
	}
	tags := make(map[string]string, len(info.UserMetadata))
	for name, value := range info.UserMetadata {
		tags[strings.ToLower(name)] = value
	}
	return tags
}
