// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// idleConnections is the number of connections kept open. Requests are concurrent, and a new TLS connection for each
	// would cost more than the request itself.
	idleConnections = 256
	// idleFor is how long an idle connection is kept, which covers the pause between posts under load.
	idleFor          = 90 * time.Second
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
)

// keepAlive detects a dead watch connection within half a minute. Until then, a revoked key would still be valid.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// NewHTTPClient returns a client that uses HTTP/1.1 over many connections, with the credentials and wrappers of cfg.
// Over a single HTTP/2 connection, client-go's default, concurrent writes wait for one another and all go to one
// kube-apiserver, even if there are several (kubernetes/kubernetes#88567). Errors identify the invalid part of cfg.
func NewHTTPClient(cfg *rest.Config) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the TLS settings of the Kubernetes client: %w", err)
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConns:        idleConnections,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleFor,
		DisableCompression:  true,
	}
	if cfg.Proxy != nil {
		transport.Proxy = cfg.Proxy
	}
	if cfg.Dial != nil {
		transport.DialContext = cfg.Dial
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, transport)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the Kubernetes client: %w", err)
	}
	return &http.Client{Transport: wrapped, Timeout: cfg.Timeout}, nil
}
