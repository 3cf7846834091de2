package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// controlPlane is a sandbox of a benchmark's own.
type controlPlane struct {
	binary, data string
}

// startControlPlane starts a sandbox with its data in the folder called name in
// dir, and the arguments.
func startControlPlane(ctx context.Context, dir, name, binary string, args ...string) (*controlPlane, error) {
	c := &controlPlane{binary: binary, data: filepath.Join(dir, name)}
	if err := c.command(ctx, append([]string{"up", "--detach"}, args...)...).Run(); err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return c, nil
}

// command is a command of the sandbox; what it says is of no interest.
func (c *controlPlane) command(ctx context.Context, args ...string) *exec.Cmd {
	return command(ctx, c.binary, append(args, "--data-dir", c.data)...)
}

func (c *controlPlane) stop(ctx context.Context) error {
	return c.command(context.WithoutCancel(ctx), "down").Run()
}

func (c *controlPlane) kubeconfig() string { return filepath.Join(c.data, "kubeconfig") }

// config returns how to reach the API server, without a limit of requests.
func (c *controlPlane) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of API versions that will go
	return config, nil
}
