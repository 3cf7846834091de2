package bom_test

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/kubectl-sched/kubectl-sched/internal/release/bom"
	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
)

// TestOf holds that the bill lists exactly the modules that are linked, by a small
// binary of this module.
func TestOf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "release")
	err := gobuild.Build(t.Context(), "../../..", file, gobuild.Command{Package: "./cmd/release"}, gobuild.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil || len(info.Deps) == 0 {
		t.Fatalf("the binary does not say what it is built of: %v", err)
	}
	options := bom.Options{Version: "v1.2.3", At: time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("CET", 3600))}
	text, err := bom.Of(binary, options)
	if err != nil {
		t.Fatal(err)
	}
	again, err := bom.Of(binary, options)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, again) {
		t.Error("the same binary gave another bill")
	}
	var document cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&document); err != nil {
		t.Fatal(err)
	}
	if document.SpecVersion != cdx.SpecVersion1_6 || document.Metadata.Timestamp != "2026-03-04T05:06:07Z" || !strings.HasPrefix(document.SerialNumber, "urn:uuid:") {
		t.Errorf("got %v, %q, %q", document.SpecVersion, document.Metadata.Timestamp, document.SerialNumber)
	}
	sum := sha256.Sum256(binary)
	main := document.Metadata.Component
	if main.Version != "v1.2.3" || (*main.Hashes)[0].Value != hex.EncodeToString(sum[:]) {
		t.Errorf("the binary is %+v", main)
	}
	listed := map[string]bool{}
	for _, c := range *document.Components {
		if listed[c.PackageURL] {
			t.Errorf("%s is listed twice", c.PackageURL)
		}
		listed[c.PackageURL] = true
		if c.Name != "std" && (c.Hashes == nil || len((*c.Hashes)[0].Value) != 64) {
			t.Errorf("%s has no checksum", c.PackageURL)
		}
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+m.Path+"@"+strings.ReplaceAll(m.Version, "+", "%2B"))
	}
	for _, purl := range want {
		if !listed[purl] {
			t.Errorf("%s is linked and not listed", purl)
		}
	}
	if len(listed) != len(want) {
		t.Errorf("%d modules are listed, and %d are linked", len(listed), len(want))
	}
}

func TestNoBinary(t *testing.T) {
	t.Parallel()
	if _, err := bom.Of([]byte("#!/bin/sh\n"), bom.Options{Version: "v1.2.3"}); err == nil || !strings.Contains(err.Error(), "read what the binary is built of") {
		t.Errorf("got %v", err)
	}
}
