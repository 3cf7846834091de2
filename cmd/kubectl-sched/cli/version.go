package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy"
)

// Release is what a program was released as, which only the linker knows. The zero
// Release is a build that nobody released.
type Release struct {
	// Version is the release's, as v1.2.3.
	Version string
	// Commit is the git commit that it was built from, in full.
	Commit string
}

type versionFlags struct{ output string }

func newVersionCommand(a *app) *cobra.Command {
	f := &versionFlags{}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and what it is built against",
		GroupID: groupLook,
		Long: "Print the version of the plugin, the one Kubernetes version that it is built against, and\n" +
			"the versions of CUE and of the policy schema. No cluster is asked.",
		Example: "  kubectl sched version\n  kubectl sched version -o json",
		Args:    cobra.NoArgs,
		RunE:    runE(func([]string) (*versionOptions, error) { return f.toOptions(a) }),
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

type versionOptions struct {
	out     io.Writer
	format  report.Format
	release Release
	info    func() (*debug.BuildInfo, bool)
}

func (f *versionFlags) toOptions(a *app) (*versionOptions, error) {
	format, err := report.ParseFormat(f.output, report.Text, report.JSON, report.YAML)
	if err != nil {
		return nil, err
	}
	return &versionOptions{out: a.Out, format: format, release: a.release, info: debug.ReadBuildInfo}, nil
}

// Validate implements options.
func (o *versionOptions) Validate() error { return nil }

// versions is the document that version prints.
type versions struct {
	// ClientVersion is the plugin, in the form of "kubectl version".
	ClientVersion clientVersion `json:"clientVersion"`
	// KubernetesVersion is the release whose API and libraries are built in.
	KubernetesVersion string `json:"kubernetesVersion"`
	// CUEVersion is the release of CUE that evaluates policies.
	CUEVersion string `json:"cueVersion"`
	// SchemaVersion is that of the policy schema.
	SchemaVersion string `json:"schemaVersion"`
	// SchemaLanguage is the version of the CUE language that the schema is
	// written in, and so the lowest that a vendored copy needs.
	SchemaLanguage string `json:"schemaLanguage"`
}

type clientVersion struct {
	GitVersion   string `json:"gitVersion"`
	GitCommit    string `json:"gitCommit,omitempty"`
	GitTreeState string `json:"gitTreeState,omitempty"`
	GoVersion    string `json:"goVersion"`
	Compiler     string `json:"compiler"`
	Platform     string `json:"platform"`
}

// released overrides what Go recorded with what the release says.
func (c *clientVersion) released(r Release) {
	if r.Version != "" {
		c.GitVersion = r.Version
	}
	if r.Commit != "" {
		c.GitCommit = r.Commit
	}
}

// ownVersion returns the version of this program, "unknown" or "(devel)" where it is
// none of a release.
func (a *app) ownVersion() string {
	v := versionsOf(debug.ReadBuildInfo()).ClientVersion
	v.released(a.release)
	return v.GitVersion
}

// Run implements options.
func (o *versionOptions) Run(context.Context) error {
	v := versionsOf(o.info())
	v.ClientVersion.released(o.release)
	switch o.format {
	case report.JSON:
		encoder := json.NewEncoder(o.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case report.YAML:
		data, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = o.out.Write(data)
		return err
	default: // text
	}
	_, err := fmt.Fprintf(o.out, "Client Version: %s\nKubernetes Version: %s\nCUE Version: %s\nSchema Version: %s (CUE language %s)\n",
		v.ClientVersion.GitVersion, v.KubernetesVersion, v.CUEVersion, v.SchemaVersion, v.SchemaLanguage)
	return err
}

// unknownVersion stands where the build does not say.
const unknownVersion = "unknown"

// versionsOf reads the versions off what the linker recorded.
func versionsOf(info *debug.BuildInfo, ok bool) versions {
	v := versions{
		ClientVersion: clientVersion{
			GitVersion: unknownVersion, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
			Platform: runtime.GOOS + "/" + runtime.GOARCH,
		},
		KubernetesVersion: unknownVersion, CUEVersion: unknownVersion,
		SchemaVersion: policy.SchemaVersion, SchemaLanguage: policy.SchemaLanguage,
	}
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.ClientVersion.GitVersion = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.ClientVersion.GitCommit = s.Value
		case "vcs.modified":
			v.ClientVersion.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "k8s.io/api":
			// The staging modules of Kubernetes 1.x.y are versioned v0.x.y.
			if rest, ok := strings.CutPrefix(dep.Version, "v0."); ok {
				v.KubernetesVersion = "v1." + rest
			}
		case "cuelang.org/go":
			v.CUEVersion = dep.Version
		}
	}
	return v
}
