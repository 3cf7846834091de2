package cli_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestStrangers holds that nothing which a stranger's pull request may hold runs code,
// reaches the network, is read from elsewhere or exhausts the runner. The scripts have
// the address of a server in $LISTENER, and two commands more:
//
//	expand FILE...    put the values of $LISTENER and $WORK into files
//	unasked           hold that nobody has asked the server
func TestStrangers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "nobody may ask", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)

	p := scripts("stranger")
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("LISTENER", server.URL)
		env.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
		return doubling(filepath.Join(env.WorkDir, "repo", "layers"), 14, setup(env))
	}
	p.Cmds = maps.Clone(p.Cmds)
	p.Cmds["expand"] = func(ts *testscript.TestScript, _ bool, args []string) {
		values := strings.NewReplacer("$LISTENER", ts.Getenv("LISTENER"), "$WORK", ts.Getenv("WORK"))
		for _, name := range args {
			ts.Check(os.WriteFile(ts.MkAbs(name), []byte(values.Replace(ts.ReadFile(name))), 0o600))
		}
	}
	p.Cmds["unasked"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		if n := asked.Load(); n > 0 {
			ts.Fatalf("the server was asked %d times", n)
		}
		// It would have been noticed.
		answer, err := http.Get(server.URL)
		ts.Check(err)
		ts.Check(answer.Body.Close())
		if asked.Load() != 1 {
			ts.Fatalf("the server does not count")
		}
	}
	testscript.Run(t, p)
}

// doubling writes kustomizations of which each includes the one below twice.
func doubling(dir string, layers int, err error) error {
	write := func(name, text string) {
		if err != nil {
			return
		}
		file := filepath.Join(dir, name)
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
	}
	write("l0/kustomization.yaml", "resources: [a.yaml]\n")
	write("l0/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	for i := range layers {
		write(fmt.Sprintf("l%d/kustomization.yaml", i+1), "resources: [a, b]\n")
		for _, name := range []string{"a", "b"} {
			write(fmt.Sprintf("l%d/%s/kustomization.yaml", i+1, name), fmt.Sprintf("namePrefix: %s-\nresources: [../../l%d]\n", name, i))
		}
	}
	return err
}
