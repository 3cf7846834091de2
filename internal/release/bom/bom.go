// Package bom writes the software bill of materials of a Go binary, as CycloneDX
// JSON: the modules that are linked into it, each with its version and checksum, as
// the linker recorded them in the binary itself.
//
// It must not know where the binary goes, and asks neither the module cache nor the
// network: what it says is true of the bytes that it was given.
package bom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// Options say what the binary is.
type Options struct {
	// Version is that of the main module, which the binary does not know.
	Version string
	// At is when the source was last changed.
	At time.Time
}

// Of returns the bill of materials of the binary: the same bytes for the same binary
// and options. A module without a checksum is an error: nobody could check it.
func Of(binary []byte, o Options) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("read what the binary is built of: %w", err)
	}
	sum := sha256.Sum256(binary)
	document := cdx.NewBOM()
	document.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(o.Version+"\n"), sum[:]...)).String()
	main := cdx.Component{
		BOMRef: purl(info.Main.Path, o.Version), Type: cdx.ComponentTypeApplication, Name: path.Base(info.Path), Version: o.Version,
		PackageURL: purl(info.Main.Path, o.Version) + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Properties: properties(info),
	}
	document.Metadata = &cdx.Metadata{
		Timestamp: o.At.UTC().Format(time.RFC3339), Component: &main,
		Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhaseBuild}},
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{BOMRef: purl("std", version), Type: cdx.ComponentTypeLibrary, Name: "std", Version: version, PackageURL: purl("std", version)}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := component(m)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	document.Components = &components
	// Which module uses which is not recorded; that these are all of them is.
	document.Compositions = &[]cdx.Composition{{Aggregate: cdx.CompositionAggregateComplete, Assemblies: &[]cdx.BOMReference{cdx.BOMReference(main.BOMRef)}}}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(document, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("write the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// component returns a linked module.
func component(m *debug.Module) (cdx.Component, error) {
	encoded, ok := strings.CutPrefix(m.Sum, "h1:")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(sum) != sha256.Size {
		return cdx.Component{}, errors.Join(fmt.Errorf("module %s %s has the checksum %q, which is none of go.sum", m.Path, m.Version, m.Sum), err)
	}
	return cdx.Component{
		BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired,
		PackageURL: purl(m.Path, m.Version),
		// go.sum's: the SHA-256 of the list of the SHA-256 of the module's files.
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
	}, nil
}

// purl is the package URL of a module (the purl specification, type golang).
func purl(module, version string) string {
	return "pkg:golang/" + module + "@" + url.PathEscape(version)
}

// properties are what else of the build matters to whoever would repeat it.
func properties(info *debug.BuildInfo) *[]cdx.Property {
	all := []cdx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "-trimpath":
			all = append(all, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
		}
	}
	return &all
}
