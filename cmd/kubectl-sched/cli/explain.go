package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-sched/kubectl-sched/compiler"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
	"github.com/kubectl-sched/kubectl-sched/policy/load"
)

type explainFlags struct {
	pipelineFlags
	output string
}

func newExplainCommand(a *app) *cobra.Command {
	f := &explainFlags{pipelineFlags: newPipelineFlags(a)}
	cmd := &cobra.Command{
		Use:     "explain [FIELD | KIND/NAME]",
		Short:   "Document a field, or say what placement a workload gets and why",
		GroupID: groupLook,
		Long: "With a field, document it: what it means, its type and default, what it compiles to, and an\n" +
			"example. Names that you choose yourself may be left out of the path. Without an argument\n" +
			"the whole document is described.\n\n" +
			"With a workload, say which policies are in force for it, what each adds to its pods, by\n" +
			"which line and why there, and which exceptions and overrides spare it.",
		Example: "  # What may stand there?\n" +
			"  kubectl sched explain policies.spread.maxSkew\n\n" +
			"  # Why does this Deployment get what it gets?\n" +
			"  kubectl sched explain deployment/web -n shop -f manifests/\n\n" +
			"  # The same for what runs in the cluster\n" +
			"  kubectl sched explain deployment/web -n shop --live",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeFields,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isWorkload(args) {
				return runE(func(args []string) (*explainFieldOptions, error) { return f.toFieldOptions(a, args) })(cmd, args)
			}
			return runE(func(args []string) (*explainWorkloadOptions, error) { return f.toWorkloadOptions(a, args) })(cmd, args)
		},
	}
	f.addTo(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "Format for workloads: text, json or yaml")
	completeValues(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

// isWorkload tells "deployment/web" and "deployment web" from a field's path.
func isWorkload(args []string) bool {
	return len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/") && !strings.Contains(strings.SplitN(args[0], "/", 2)[0], "policies.")
}

// completeFields completes the dotted path of a field, a part at a time.
func completeFields(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	at := strings.LastIndexByte(typed, '.') + 1
	field, err := load.Describe(fieldPath(typed[:at])...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, f := range field.Fields {
		if name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]; strings.HasPrefix(name, typed[at:]) {
			found = append(found, typed[:at]+name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// fieldPath splits a dotted path; dots at its ends are no matter.
func fieldPath(dotted string) []string {
	dotted = strings.Trim(dotted, ".")
	if dotted == "" {
		return nil
	}
	return strings.Split(dotted, ".")
}

type explainFieldOptions struct {
	app  *app
	path []string
}

func (f *explainFlags) toFieldOptions(a *app, args []string) (*explainFieldOptions, error) {
	if f.output != string(report.Text) {
		return nil, fmt.Errorf("-o %s is for workloads (KIND/NAME); fields are documented as text", f.output)
	}
	o := &explainFieldOptions{app: a}
	if len(args) == 1 {
		o.path = fieldPath(args[0])
	}
	return o, nil
}

// Validate implements options.
func (o *explainFieldOptions) Validate() error {
	for _, name := range o.path {
		if name == "" {
			return errors.New("a field's path is names with single dots between them, such as \"policies.spread.maxSkew\"")
		}
	}
	return nil
}

// Run implements options.
func (o *explainFieldOptions) Run(context.Context) error {
	described, err := load.Describe(o.path...)
	if err != nil {
		return err
	}
	field := documented(described)
	if intent, ok := intentOf(described.Path); ok {
		field.CompilesTo, field.Limits, field.Example = intent.Fields, intent.Limits, intent.Example
		if described.Path == "policies.NAME."+intent.Name {
			// The compiler's own words say more of an intent than the schema's.
			field.Doc = intent.Doc
		}
	}
	return report.FieldText(o.app.Out, field, o.app.reportOptions(o.app.Out))
}

// documented is the schema's part of a field's documentation.
func documented(f load.Field) report.Field {
	d := report.Field{Path: f.Path, Type: f.Type, Default: f.Default, Doc: f.Doc, Required: f.Required, Allowed: f.Allowed}
	for _, child := range f.Fields {
		d.Fields = append(d.Fields, documented(child))
	}
	return d
}

// intentOf returns the intent that a field is or belongs to.
func intentOf(path string) (compiler.Intent, bool) {
	rest, ok := strings.CutPrefix(path, "policies.NAME.")
	if !ok {
		return compiler.Intent{}, false
	}
	name, _, _ := strings.Cut(rest, ".")
	for _, intent := range compiler.Intents() {
		if intent.Name == name {
			return intent, true
		}
	}
	return compiler.Intent{}, false
}
