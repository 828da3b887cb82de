// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/internal/media/store"
)

// mediaFlags are the flags of the store of media files, the same for manager and
// apiserver.
type mediaFlags struct {
	endpoint, publicEndpoint string
	region, bucket           string
	credentials              string
	pathStyle                bool
}

func (f *mediaFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&f.endpoint, "media-endpoint", "", "address of the S3-compatible store of media files, such as https://s3.eu-central-1.amazonaws.com")
	flags.StringVar(&f.publicEndpoint, "media-public-endpoint", "", "the same store's address as clients reach it to upload files; empty if it is the same")
	flags.StringVar(&f.region, "media-region", "us-east-1", "region that requests to the store are signed for")
	flags.StringVar(&f.bucket, "media-bucket", "herald-media", "bucket of this installation; files in it that belong to no Media are removed")
	flags.StringVar(&f.credentials, "media-credentials", "", "YAML or JSON file with accessKey and secretKey of the store")
	flags.BoolVar(&f.pathStyle, "media-path-style", false, "put the bucket into the path instead of the host name, as stores on hosts of their own usually want it")
}

// storeCredentials is the file that --media-credentials names.
type storeCredentials struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

// store opens the store; it asks it for nothing yet.
func (f *mediaFlags) store() (*store.Store, error) {
	if f.endpoint == "" || f.credentials == "" {
		return nil, usageError{errors.New("--media-endpoint and --media-credentials are required: name the S3-compatible store that keeps media files")}
	}
	config := store.Config{Region: f.region, Bucket: f.bucket, PathStyle: f.pathStyle}
	var err error
	if config.Endpoint, config.Insecure, err = storeAddress("--media-endpoint", f.endpoint); err != nil {
		return nil, err
	}
	if f.publicEndpoint != "" {
		if config.PublicEndpoint, config.PublicInsecure, err = storeAddress("--media-public-endpoint", f.publicEndpoint); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(f.credentials) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return nil, fmt.Errorf("cannot read the store's credentials: %w", err)
	}
	var key storeCredentials
	if err := yaml.UnmarshalStrict(data, &key); err != nil {
		return nil, fmt.Errorf("--media-credentials %s: want accessKey and secretKey", f.credentials)
	}
	config.AccessKey, config.SecretKey = key.AccessKey, key.SecretKey
	if key.AccessKey == "" || key.SecretKey == "" {
		return nil, fmt.Errorf("--media-credentials %s: accessKey and secretKey must not be empty", f.credentials)
	}
	return store.New(config)
}

// storeAddress takes apart the address of a store: the client wants host and
// port, and whether to do without TLS.
func storeAddress(name, address string) (host string, insecure bool, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return "", false, usageError{fmt.Errorf("%s=%s: want an address like https://s3.example.com or http://store:9000", name, address)}
	}
	return u.Host, u.Scheme == "http", nil
}
