// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds lists modules in go.mod whose CustomResourceDefinitions are read. Each import is a small package of its
// module.
package crds

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
