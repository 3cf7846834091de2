package main

import (
	_ "cuelang.org/go/cue"
	_ "cuelang.org/go/cue/load"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/pflag"
	_ "go.yaml.in/yaml/v3"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	_ "k8s.io/kubectl/pkg/cmd/apply"
	_ "k8s.io/kubectl/pkg/cmd/diff"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/kustomize/api/krusty"
	_ "sigs.k8s.io/kustomize/kyaml/fn/framework"
	_ "sigs.k8s.io/yaml"
)

func main() {}
