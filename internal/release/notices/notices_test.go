package notices_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/release/gobuild"
	"github.com/kubectl-sched/kubectl-sched/internal/release/notices"
)

// TestOf holds, of the plugin itself, that every linked module is named with its
// licence, those of folders inside a module too, and equal texts once.
func TestOf(t *testing.T) {
	t.Parallel()
	text, err := notices.Of(t.Context(), "../../..", "./cmd/kubectl-sched", gobuild.Platform{OS: "windows", Arch: "arm64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"What kubectl-sched is built of",
		"the Go standard library (LICENSE)\n",
		"k8s.io/kubernetes v1.37.2 (LICENSE)\n",
		"cuelang.org/go v", "github.com/spf13/cobra v",
		"k8s.io/apimachinery/third_party/forked/golang v", // a folder with a licence of its own
		"github.com/inconshreveable/mousetrap v",          // linked on Windows alone
		"Redistribution and use in source and binary forms",
	} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("nothing is said of %q", part)
		}
	}
	if bytes.Contains(text, []byte("github.com/kubectl-sched")) {
		t.Error("our own source is listed as somebody else's")
	}
	seen := map[string]bool{}
	for section := range strings.SplitSeq(string(text), strings.Repeat("=", 80)) {
		_, licence, ok := strings.Cut(section, strings.Repeat("-", 80))
		if ok && seen[licence] {
			t.Errorf("a text is given twice:%.80s", licence)
		}
		seen[licence] = true
	}
}

// TestUnknownCommand holds that what cannot be found out about is an error.
func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	if _, err := notices.Of(t.Context(), "../../..", "./cmd/nothing", gobuild.Platform{OS: "linux", Arch: "amd64"}); err == nil {
		t.Error("a command that is not there has no licences")
	}
}
