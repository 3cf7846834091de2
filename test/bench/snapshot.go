package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture/capturetest"
)

// The cluster that a snapshot is taken of.
const (
	snapshotNodes = 5000
	snapshotPods  = 100_000
	// snapshotMB is how large the file may be.
	snapshotMB = 20
)

// snapshotRows are what taking a snapshot of a large cluster costs, against reading
// the same lists, which an API server in this process makes, and dropping them, and
// what reading the file costs, against unpacking nothing more than it.
//
// What a capture takes at its peak is to be held against what the objects take:
// the peak of reading the file is that, and the file besides.
func snapshotRows(dir, plugin string) []row {
	file := filepath.Join(dir, "large.snapshot")
	return []row{
		{
			name:     fmt.Sprintf("snapshot: capture of %d nodes, %d pods", snapshotNodes, snapshotPods),
			baseline: "listing the same, keeping nothing",
			runs:     1, maxMiB: 2048,
			pair: func(ctx context.Context) (usage, usage, error) { return captureOnce(ctx, dir, plugin, file) },
		},
		{
			name:     "snapshot: read it (show)",
			baseline: "version",
			runs:     3, maxSeconds: 3,
			a: []string{plugin, "snapshot", "show", file},
			b: []string{plugin, "version"},
		},
	}
}

// captureOnce has the plugin capture the large cluster, and the bench itself list it.
func captureOnce(ctx context.Context, dir, plugin, file string) (a, b usage, err error) {
	server := httptest.NewServer(&capturetest.Server{Resources: capturetest.Large(snapshotNodes, snapshotPods)})
	defer server.Close()
	kubeconfig := filepath.Join(dir, "large.kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: large\ncontexts: [{name: large, context: {cluster: large}}]\nclusters: [{name: large, cluster: {server: %q}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return a, b, err
	}
	if a, err = runOnce(ctx, []string{plugin, "snapshot", "-o", file, "--kubeconfig", kubeconfig}); err != nil {
		return a, b, err
	}
	start := time.Now()
	received, err := listAll(ctx, server.URL)
	if err != nil {
		return a, b, err
	}
	b.seconds = time.Since(start).Seconds()
	info, err := os.Stat(file)
	if err != nil {
		return a, b, err
	}
	mb := float64(info.Size()) / 1e6
	fmt.Fprintf(os.Stderr, "the lists have %.0f MB; the file has %.1f, and may have %d\n", float64(received)/1e6, mb, snapshotMB)
	if mb > snapshotMB {
		return a, b, fmt.Errorf("the snapshot has %.1f MB, and may have %d", mb, snapshotMB)
	}
	return a, b, nil
}

// listAll reads the lists of which the large cluster has any, and returns how many
// bytes they have.
func listAll(ctx context.Context, url string) (received int64, err error) {
	for _, path := range []string{"api/v1/namespaces", "api/v1/nodes", "api/v1/pods", "apis/apps/v1/deployments", "apis/apps/v1/replicasets"} {
		for from := 0; ; from += pageSize {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%s?limit=%d&continue=%d", url, path, pageSize, from), nil)
			if err != nil {
				return 0, err
			}
			request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return 0, err
			}
			n, err := io.Copy(io.Discard, response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				return 0, err
			}
			received += n
			if n < emptyPage {
				break
			}
		}
	}
	return received, nil
}

const (
	pageSize = 500
	// emptyPage is more bytes than a page without objects has.
	emptyPage = 100
)
