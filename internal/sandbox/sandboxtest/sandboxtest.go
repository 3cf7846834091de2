// Package sandboxtest gives tests a control plane.
//
// A start takes some seconds, so one sandbox a test package is the norm:
//
//	var shared = sandboxtest.Shared{}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestX(t *testing.T) { sb := shared.Get(t) … }
//
// Tests that share one keep to namespaces and node names of their own. A test
// that kills parts or counts nodes takes one for itself, with ForTest.
//
// The package must not know what the tests do in it, and nothing but tests may
// import it.
package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// ForTest starts a sandbox for t, and stops it when t and its subtests are over.
// If the sandbox does not come up, t fails with the reason. The logs of the parts
// go with the sandbox, unless options names a DataDir.
func ForTest(t testing.TB, options sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	sb, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Stop(); err != nil {
			t.Errorf("stop sandbox: %v", err)
		}
	})
	return sb
}

// Shared is one sandbox for all tests of a package. The first Get starts it, so
// that a run of other tests alone costs nothing; Run stops it.
type Shared struct {
	// Options are what the sandbox is started with.
	Options sandbox.Options

	mu      sync.Mutex
	sandbox *sandbox.Sandbox
	err     error
}

// Get returns the sandbox, which it starts if need be. If it does not come up, t
// fails with the reason, and so does every later test that asks.
func (s *Shared) Get(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil && s.err == nil {
		// Not the test's context: the sandbox outlives the test that comes first.
		s.sandbox, s.err = sandbox.Start(context.WithoutCancel(t.Context()), s.Options)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.sandbox
}

// Run runs the tests of a package, stops the sandbox, and returns the exit code
// for TestMain to end with.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Stop stops the sandbox, if a test has asked for it: for packages with several,
// which cannot all Run the tests.
func (s *Shared) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil {
		return nil
	}
	if err := s.sandbox.Stop(); err != nil {
		return errors.Join(errors.New("stop the shared sandbox"), err)
	}
	return nil
}
