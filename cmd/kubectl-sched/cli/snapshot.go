package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/anonymize"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/capture"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// namesSuffix is what the file with the names that were replaced is called after.
const namesSuffix = ".names"

func newSnapshotCommand(a *app) *cobra.Command {
	f := &snapshotFlags{config: a.newConfigFlags()}
	cmd := newGroupCommand(&cobra.Command{
		Use:     "snapshot -o FILE",
		Short:   "Take a snapshot of what scheduling depends on in a cluster",
		GroupID: groupLook,
		Long: "Write what scheduling depends on in a cluster to a file: nodes, pods, volumes, workloads,\n" +
			"quotas, groups, devices, and the profiles of the bundled scheduler. Only the fields that\n" +
			"scheduling reads are kept: no environment, arguments, secrets or configuration. A file\n" +
			"whose name ends in .yaml is plain YAML; such a file can also be written by hand.\n\n" +
			"With --anonymize every name and value is replaced, so that everything still matches what\n" +
			"it matched. Numbers stay, and so do keys of kubernetes.io and of well-known products. What\n" +
			"the words stand for is in FILE" + namesSuffix + ", which stays with you; one that is there already is\n" +
			"used again, so that two snapshots have the same words.",
		Example: "  kubectl sched snapshot -o prod-eu.snapshot\n" +
			"  kubectl sched snapshot -o prod-eu.snapshot --anonymize --context prod-eu\n" +
			"  kubectl sched snapshot diff monday.snapshot friday.snapshot",
	}, newSnapshotShowCommand(a), newSnapshotDiffCommand(a))
	unknownVerb := cmd.RunE
	take := runE(func([]string) (*snapshotOptions, error) { return f.toOptions(a) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 || f.file == "" && !cmd.Flags().Changed("anonymize") {
			return unknownVerb(cmd, args)
		}
		return take(cmd, args)
	}
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "File to write; one that ends in .yaml is plain YAML")
	cmd.Flags().BoolVar(&f.anonymize, "anonymize", false, "Replace names and values, and keep what they were in a file of their own")
	cmd.Flags().StringVar(&f.names, "names", "", "File with the names that --anonymize replaces (default FILE"+namesSuffix+")")
	return cmd
}

type snapshotFlags struct {
	config    *genericclioptions.ConfigFlags
	file      string
	anonymize bool
	names     string
}

type snapshotOptions struct {
	app    *app
	config *genericclioptions.ConfigFlags
	file   string
	// names is the file of names; empty where nothing is replaced.
	names     string
	namesOnly bool
}

func (f *snapshotFlags) toOptions(a *app) (*snapshotOptions, error) {
	o := &snapshotOptions{app: a, config: f.config, file: f.file, names: f.names}
	if f.anonymize && o.names == "" {
		o.names = f.file + namesSuffix
	}
	o.namesOnly = f.names != "" && !f.anonymize
	return o, nil
}

// Validate implements options.
func (o *snapshotOptions) Validate() error {
	switch {
	case o.file == "":
		return errors.New("-o is missing: name the file to write")
	case o.namesOnly:
		return errors.New("--names needs --anonymize")
	case o.names != "" && filepath.Clean(o.names) == filepath.Clean(o.file):
		return errors.New("--names and -o name the same file")
	}
	return nil
}

// Run implements options.
func (o *snapshotOptions) Run(ctx context.Context) error {
	client, err := connectTo(o.config)
	if err != nil {
		return err
	}
	names, err := o.readNames() // before the long part
	if err != nil {
		return err
	}
	s, err := o.app.takeSnapshot(ctx, client, contextOf(o.config))
	if err != nil {
		return err
	}
	if names != nil {
		if s, err = anonymize.Snapshot(s, names); err != nil {
			return err
		}
		// The names come first: a snapshot whose names are lost is of no use.
		if err := replaceFileBy(o.names, 0o600, names.Write); err != nil {
			return fmt.Errorf("write the names: %w", err)
		}
	}
	if err := replaceFileBy(o.file, 0o600, func(w io.Writer) error { return writeSnapshot(w, o.file, s) }); err != nil {
		return err
	}
	o.app.say(o.app.Out, "%s", o.done(s))
	return nil
}

// readNames returns the names that are replaced: those of the file, or new ones; nil
// where none are.
func (o *snapshotOptions) readNames() (*anonymize.Names, error) {
	if o.names == "" {
		return nil, nil
	}
	names, err := namesIn(o.names)
	if errors.Is(err, fs.ErrNotExist) {
		return anonymize.New(rand.Reader)
	}
	return names, err
}

// namesIn reads a file of names.
func namesIn(file string) (*anonymize.Names, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := anonymize.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return names, nil
}

func (o *snapshotOptions) done(s *snapshot.Snapshot) string {
	text := fmt.Sprintf("%s: %s, %s", o.file, count(len(s.Nodes), "node", "nodes"), count(len(s.Pods), "pod", "pods"))
	if info, err := os.Stat(o.file); err == nil {
		text += ", " + fileSize(info.Size())
	}
	if o.names != "" {
		text += fmt.Sprintf("; what the names were is in %s, which you should not give away", o.names)
	}
	return text
}

// fileSize says how large a file is.
func fileSize(bytes int64) string {
	if bytes < 1e6 {
		return fmt.Sprintf("%d kB", (bytes+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// writeSnapshot writes the snapshot in the form that the file's name asks for.
func writeSnapshot(w io.Writer, file string, s *snapshot.Snapshot) error {
	switch filepath.Ext(file) {
	case ".yaml", ".yml":
		return snapshot.WriteYAML(w, s)
	}
	return snapshot.Write(w, s, buildVersion())
}

// contextOf names the context of the kubeconfig that is in use; empty if there is
// none, as in a pod.
func contextOf(config *genericclioptions.ConfigFlags) string {
	if config.Context != nil && *config.Context != "" {
		return *config.Context
	}
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// captureProgress says on a terminal how far a capture is.
type captureProgress struct{ screen *report.Screen }

func (a *app) newCaptureProgress() captureProgress {
	return captureProgress{report.NewScreen(a.ErrOut, a.getenv)}
}

func (p captureProgress) hear(at capture.Progress) {
	if p.screen == nil {
		return
	}
	line := fmt.Sprintf("reading %s: %d", at.What, at.Read)
	if at.Left > 0 {
		line += fmt.Sprintf(" of about %d", at.Read+at.Left)
	}
	p.screen.Show([]string{line})
}

// end takes the line off the terminal.
func (p captureProgress) end() {
	if p.screen != nil {
		p.screen.Show(nil)
	}
}
