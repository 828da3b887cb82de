// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds imports one small package of each module whose CustomResourceDefinitions are read, to keep the modules
// in go.mod.
package crds

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
