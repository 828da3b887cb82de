// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubehttp reaches the Kubernetes API over many connections. One HTTP/2 connection, client-go's
// default, makes concurrent writes wait for one another, and stays with the kube-apiserver that it was
// made to, so that one of several does all the work (kubernetes/kubernetes#88567).
package kubehttp

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// idleConnections is how many connections are kept open. Requests go out side by side; each
	// new TLS connection would cost more than the request.
	idleConnections = 256
	// idleFor is how long an unused one is kept: the pause between two posts of many.
	idleFor = 90 * time.Second
	// dialTimeout and handshakeTimeout bound the making of a connection.
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
)

// keepAlive finds out within half a minute that a watch's connection is dead: until then a revoked key would
// still be good.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// NewClient returns a client that speaks HTTP/1.1, with the credentials and wrappers of a config. An error
// says which part of the config is wrong.
func NewClient(cfg *rest.Config) (*http.Client, error) {
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
