// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"

	"github.com/minio/minio-go/v7"
)

// fileErrorCodes are the codes for errors that affect one file while the store serves others. They do not include codes
// that may also concern the bucket, the credentials or the whole store, such as AccessDenied.
var fileErrorCodes = map[string]bool{
	// Amazon S3, "List of error codes".
	"KeyTooLongError":    true,
	"InvalidURI":         true,
	"EntityTooLarge":     true,
	"EntityTooSmall":     true,
	"InvalidObjectState": true, // an archived file, which must be restored first
	"InvalidRange":       true,
	"MethodNotAllowed":   true, // also the response to reading a delete marker
	// MinIO, cmd/api-errors.go.
	"XMinioInvalidObjectName":       true,
	"XMinioInvalidResourceName":     true,
	"XMinioObjectExistsAsDirectory": true,
	"XMinioParentIsObject":          true,
	"XMinioObjectTampered":          true,
	// Ceph, "S3 error responses".
	"InvalidObjectName": true,
	// Versity Gateway, s3err/s3err.go.
	"ObjectParentIsFile":        true,
	"ExistingObjectIsDirectory": true,
}

// IsFileError reports whether an error concerns only the requested file: the store itself has responded, and refuses
// that key or its content. Other files are not affected.
func IsFileError(err error) bool {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrChanged) {
		return true
	}
	response, ok := errors.AsType[minio.ErrorResponse](err)
	// minio-go makes up a code if the response has no body, or one that does not come from the store.
	return ok && response.XMLName.Local != "" && fileErrorCodes[response.Code]
}
