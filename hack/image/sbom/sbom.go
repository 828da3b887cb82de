// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom lists the contents of an image, in CycloneDX format. The list is based on the same inputs as the image:
// the module versions that Go records in a program, and the unpacked Debian packages.
package sbom

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"

	"github.com/herald-social/herald/hack/image/debian"
)

// Subject is the image that is listed.
type Subject struct {
	// Name is the image's name in its registry, without a tag.
	Name, Version, Licences string
	// Architecture is Go's name for the architecture.
	Architecture string
	// Digest is the image's digest for this architecture, as sha256:hash.
	Digest string
	// Created is the timestamp of the list.
	Created time.Time
}

// GoProgram returns the components of a program: the program itself, Go's standard library, and the modules. version
// replaces the version recorded for the program's own module, which is only the checkout's.
func GoProgram(file, version string) ([]cdx.Component, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	components := []cdx.Component{
		module(cdx.ComponentTypeApplication, debug.Module{Path: info.Path, Version: version}),
		module(cdx.ComponentTypeLibrary, debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}),
	}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, module(cdx.ComponentTypeLibrary, *dependency))
	}
	return components, nil
}

// Licences returns SPDX identifiers as CycloneDX licences.
func Licences(identifiers []string) *cdx.Licenses {
	var out cdx.Licenses
	for _, id := range identifiers {
		out = append(out, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &out
}

// GoModule returns a module whose content is in the image as data.
func GoModule(m debug.Module) cdx.Component {
	return module(cdx.ComponentTypeData, m)
}

func module(kind cdx.ComponentType, m debug.Module) cdx.Component {
	namespace, name := "", m.Path
	if slash := strings.LastIndex(m.Path, "/"); slash >= 0 {
		namespace, name = m.Path[:slash], m.Path[slash+1:]
	}
	if m.Path == "std" {
		namespace, name = "", "stdlib"
	}
	address := packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, m.Version, nil, "").ToString()
	component := cdx.Component{BOMRef: address, Type: kind, Name: m.Path, Version: m.Version, PackageURL: address}
	// go.sum contains a hash of the list of a module's files, but CycloneDX only supports hashes of single files.
	if hash, found := strings.CutPrefix(m.Sum, "h1:"); found {
		if raw, err := base64.StdEncoding.DecodeString(hash); err == nil {
			component.Properties = &[]cdx.Property{{Name: "go:h1", Value: hex.EncodeToString(raw)}}
		}
	}
	return component
}

// DebianPackage returns a package from a Debian release such as 13.
func DebianPackage(p *debian.Package, release string) cdx.Component {
	address := packageurl.NewPackageURL(packageurl.TypeDebian, "debian", p.Name, p.Version, packageurl.QualifiersFromMap(map[string]string{
		"arch":   p.Architecture,
		"distro": "debian-" + release,
	}), "").ToString()
	component := cdx.Component{BOMRef: address, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: address}
	component.Properties = &[]cdx.Property{{Name: "debian:source", Value: p.Source}}
	if p.Pin.SHA256 != "" {
		component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.Pin.SHA256}}
		component.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeDistribution, URL: p.Pin.URL}}
	}
	return component
}

// Write writes the list reproducibly: without a serial number, and with the image's time.
func Write(w io.Writer, subject Subject, components []cdx.Component) error {
	components = slices.Clone(components)
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	// List a module once even if the image contains it in two ways.
	components = slices.CompactFunc(components, func(a, b cdx.Component) bool { return a.BOMRef == b.BOMRef })
	algorithm, digest, found := strings.Cut(subject.Digest, ":")
	if !found || algorithm != "sha256" {
		return fmt.Errorf("the digest %q is not one of SHA-256", subject.Digest)
	}
	address := packageurl.NewPackageURL(packageurl.TypeOCI, "", subject.Name[strings.LastIndex(subject.Name, "/")+1:], subject.Digest,
		packageurl.QualifiersFromMap(map[string]string{"arch": subject.Architecture, "repository_url": subject.Name, "tag": subject.Version}), "").ToString()
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: subject.Created.UTC().Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef:     address,
			Type:       cdx.ComponentTypeContainer,
			Name:       subject.Name,
			Version:    subject.Version,
			PackageURL: address,
			Licenses:   &cdx.Licenses{{Expression: subject.Licences}},
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}},
		},
	}
	bom.Components = &components
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
}
