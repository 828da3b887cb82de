// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds keeps modules in go.mod whose CustomResourceDefinitions are read. It imports one small package of each.
package crds

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
