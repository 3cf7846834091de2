package main

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// controlPlane is a sandbox of a benchmark's own. It runs under this program, so that
// its parts end with that, whatever ends it.
type controlPlane struct{ *sandbox.Sandbox }

// startControlPlane starts a sandbox of the program, with its data in the folder.
func startControlPlane(ctx context.Context, data, binary string, o sandbox.Options) (*controlPlane, error) {
	o.DataDir, o.Binary = data, binary
	s, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return &controlPlane{s}, nil
}

// config returns how to reach the API server, without a limit of requests.
func (c *controlPlane) config() *rest.Config {
	config := c.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // of API versions that will go
	return config
}
