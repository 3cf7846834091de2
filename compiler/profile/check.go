package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"github.com/kubectl-sched/kubectl-sched/compiler/jsonfield"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// Problem is what is wrong at one path of a configuration.
type Problem struct {
	// Rule is the rule of the finding, "scheduler/...".
	Rule     string
	Severity diag.Severity
	// Path are the field names and, in decimal, the indices that lead there.
	Path []string
	// Message says what is wrong and what would be right, as diag.Finding has it.
	Message string
}

// OwnPlugin reports whether all that is wrong is that a plugin is not known, and it
// is most likely somebody's own.
func (p Problem) OwnPlugin() bool {
	return p.Rule == ruleUnknownPlugin && p.Severity == diag.Warning
}

// Check returns what is wrong with a KubeSchedulerConfiguration, as YAML or JSON,
// by position, sorted: what upstream's strict decoder and validation refuse, what
// only the start of a scheduler would, mistakes in the arguments of our plugins,
// and what a scheduler silently accepts and does not do. File names it in
// positions.
func Check(file string, data []byte) diag.Findings {
	d, err := parse(file, data)
	if err != nil {
		return diag.Findings{notYAML(d, err)}
	}
	var out diag.Findings
	for _, p := range d.problems(data) {
		out = append(out, diag.Finding{Rule: p.Rule, Severity: p.Severity, Range: d.at(p.Path), Message: p.Message})
	}
	return out.Sort()
}

var errorLine = regexp.MustCompile(`line (\d+): `)

func notYAML(d document, err error) diag.Finding {
	pos := diag.Pos{File: d.file}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := errorLine.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			pos.Line, message = n, strings.Replace(message, m[0], "", 1)
		}
	}
	return diag.Finding{Rule: "scheduler/not-yaml", Severity: diag.Error, Range: diag.At(pos), Message: "it cannot be read: " + message}
}

// CheckFragment returns what is wrong with a fragment of a profile, by paths in
// the fragment. The order of plugins that bind is no problem of a fragment, since
// Configuration sees to it, and arguments are not for a plugin that is not enabled,
// since another wish may enable it: that Profile.Check finds.
func CheckFragment(fragment map[string]any) []Problem {
	prefix := []string{"profiles", "0"}
	whole := map[string]any{"schedulerName": NamePrefix + FeatureRaw}
	var out []Problem
	for key, v := range fragment {
		if key == "schedulerName" {
			out = append(out, Problem{Rule: "scheduler/name", Severity: diag.Error, Path: []string{key}, Message: "a profile is named after what is asked of it; leave schedulerName out"})
			continue
		}
		whole[key] = v
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": APIVersion, "kind": Kind, "leaderElection": map[string]any{"resourceName": Lease}, "profiles": []any{whole},
	})
	if err != nil {
		return append(out, Problem{Rule: "scheduler/invalid", Severity: diag.Error, Message: fmt.Sprintf("it has no JSON form: %s", err)})
	}
	d, err := parse("", data)
	if err != nil {
		return append(out, Problem{Rule: "scheduler/invalid", Severity: diag.Error, Message: err.Error()})
	}
	for _, p := range d.problems(data) {
		if p.Rule == ruleBindOrder || p.Rule == ruleIdleArgs {
			continue
		}
		p.Message = strings.TrimPrefix(p.Message, "profiles[0].")
		if len(p.Path) >= len(prefix) && slices.Equal(p.Path[:len(prefix)], prefix) {
			p.Path = p.Path[len(prefix):]
		} else {
			p.Path = nil
		}
		out = append(out, p)
	}
	return out
}

// CheckObject is Check for a configuration that has been read already, by paths
// in it.
func CheckObject(object map[string]any) []Problem {
	data, err := json.Marshal(object)
	if err == nil {
		var d document
		if d, err = parse("", data); err == nil {
			return d.problems(data)
		}
	}
	return []Problem{{Rule: "scheduler/invalid", Severity: diag.Error, Message: err.Error()}}
}

// Check returns what is wrong with the profile as a whole, by paths in it: what
// fragments and other wishes come to together.
func (p Profile) Check() ([]Problem, error) {
	text, err := Configuration([]Profile{p})
	if err != nil {
		return nil, err
	}
	d, err := parse("", text)
	if err != nil {
		return nil, err
	}
	return d.problems(text), nil
}

// problems are all that is wrong. What cannot be decoded is not looked at further.
func (d document) problems(data []byte) []Problem {
	if d.root == nil {
		return []Problem{{Rule: "scheduler/not-yaml", Severity: diag.Error, Message: "the file is empty; a scheduler's configuration has at least apiVersion and kind"}}
	}
	found := d.duplicates()
	if len(found) > 0 {
		return found
	}
	decoded, fatal := d.decode(data)
	found = append(found, decoded.problems...)
	if fatal {
		return found
	}
	found = append(found, validated(decoded.internal)...)
	return append(found, lint(decoded.written)...)
}

// decoded is a configuration as it was written, and as the scheduler takes it.
type decoded struct {
	written  *configv1.KubeSchedulerConfiguration
	internal *config.KubeSchedulerConfiguration
	problems []Problem
}

// decode decodes strictly. It is fatal where nothing is left to look at.
func (d document) decode(data []byte) (out decoded, fatal bool) {
	object, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err = out.strict(d, err); err != nil || object == nil {
		return out, out.give(d.undecodable(err)...)
	}
	written, ok := object.(*configv1.KubeSchedulerConfiguration)
	if !ok {
		return out, out.give(Problem{Rule: "scheduler/kind", Path: []string{"kind"}, Message: fmt.Sprintf("it is a %s, not a %s", gvk.Kind, Kind)})
	}
	out.written = written
	nested := runtime.WithoutVersionDecoder{Decoder: scheme.Codecs.UniversalDeserializer()}
	if err = out.strict(d, written.DecodeNestedObjects(nested)); err != nil {
		return out, out.give(d.undecodable(err)...)
	}
	if out.internal, err = withDefaults(written); err != nil {
		return out, out.give(d.undecodable(err)...)
	}
	return out, false
}

// give adds errors; they are fatal.
func (out *decoded) give(problems ...Problem) bool {
	for _, p := range problems {
		p.Severity = diag.Error
		out.problems = append(out.problems, p)
	}
	return true
}

// strict takes what the strict decoder has found apart, and returns any other
// error.
func (out *decoded) strict(d document, err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return err
	}
	for _, e := range strict.Errors() {
		out.problems = append(out.problems, d.strict(e))
	}
	return nil
}

// withDefaults is the configuration as upstream's options.LoadConfigFromFile has
// it, but that the plugins stay as they are written: merging them with the default
// ones logs each that is there twice, and validation needs no other.
func withDefaults(written *configv1.KubeSchedulerConfiguration) (*config.KubeSchedulerConfiguration, error) {
	full := written.DeepCopy()
	for i := range full.Profiles {
		full.Profiles[i].Plugins = nil
	}
	scheme.Scheme.Default(full)
	for i := range written.Profiles {
		full.Profiles[i].Plugins = written.Profiles[i].Plugins
	}
	internal := &config.KubeSchedulerConfiguration{}
	if err := scheme.Scheme.Convert(full, internal, nil); err != nil {
		return nil, err
	}
	internal.APIVersion = APIVersion // Validation asks for it.
	return internal, nil
}

// undecodable says why nothing could be decoded.
func (d document) undecodable(err error) []Problem {
	if err == nil || runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		root := plainOf(d.root)
		return []Problem{{
			Rule: "scheduler/kind", Path: d.keyOf("apiVersion", "kind"),
			Message: fmt.Sprintf("apiVersion %q and kind %q are no configuration that a scheduler of this version reads; write %s and %s", text(root["apiVersion"]), text(root["kind"]), APIVersion, Kind),
		}}
	}
	if found := d.shapes(); len(found) > 0 {
		return found
	}
	return []Problem{d.malformed(err)}
}

// text is a value that should be a string.
func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// keyOf returns the path of the first of the keys that is there.
func (d document) keyOf(keys ...string) []string {
	for _, k := range keys {
		if d.at([]string{k}) != d.at(nil) {
			return []string{k}
		}
	}
	return nil
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	argsOf       = regexp.MustCompile(`decoding args for plugin ([^:]+): `)
	structField  = regexp.MustCompile(`Go struct field \w+\.(\S+) of type (\S+)`)
)

// strict is what the strict decoder has found.
func (d document) strict(err error) Problem {
	p := Problem{Rule: "scheduler/unknown-field", Severity: diag.Error, Message: err.Error()}
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return p
	}
	p.Path = steps(m[1])
	if len(p.Path) == 0 {
		return p // A key that is empty has no place of its own.
	}
	t := reflect.TypeFor[configv1.KubeSchedulerConfiguration]()
	at := p.Path
	if plugin := argsOf.FindStringSubmatch(err.Error()); plugin != nil {
		p.Path = below(d.argsPath(plugin[1], p.Path), p.Path...)
		if o, err := scheme.Scheme.New(configv1.SchemeGroupVersion.WithKind(plugin[1] + "Args")); err == nil {
			t = reflect.TypeOf(o)
		}
	}
	last := len(at) - 1
	names := jsonfield.Names(t, at[:last])
	p.Message = fmt.Sprintf("there is no field %q", at[last])
	if near := suggest(at[last], names); near != "" {
		p.Message += near
	} else if len(names) > 0 {
		p.Message += "; the fields are " + listOf(names)
	}
	return p
}

// argsPath returns the path of the plugin's arguments, in the first profile that
// has something at the path in them: upstream's messages do not say in which.
func (d document) argsPath(plugin string, path []string) []string {
	var first []string
	root := plainOf(d.root)
	for i, p := range list(root["profiles"]) {
		for j, pc := range list(p["pluginConfig"]) {
			if pc["name"] != plugin {
				continue
			}
			at := []string{"profiles", strconv.Itoa(i), "pluginConfig", strconv.Itoa(j), "args"}
			if first == nil {
				first = at
			}
			if len(path) > 0 && d.at(below(at, path...)) != d.at(below(at, path[:len(path)-1]...)) {
				return at
			}
		}
	}
	return first
}

// plainOf returns the node as plain values; nil if it is no map.
func plainOf(n interface{ Decode(any) error }) map[string]any {
	var out map[string]any
	if n.Decode(&out) != nil {
		return nil
	}
	return out
}

// list returns the maps of a list, with an empty one for each other element.
func list(v any) []map[string]any {
	all, _ := v.([]any)
	out := make([]map[string]any, len(all))
	for i, e := range all {
		out[i], _ = e.(map[string]any)
	}
	return out
}

// malformed is a value of a wrong type, or one that its type does not take.
func (d document) malformed(err error) Problem {
	p := Problem{Rule: "scheduler/invalid", Severity: diag.Error, Message: "it cannot be decoded: " + err.Error()}
	if plugin := argsOf.FindStringSubmatch(err.Error()); plugin != nil {
		p.Path = d.argsPath(plugin[1], nil)
	}
	if m := structField.FindStringSubmatch(err.Error()); m != nil {
		p.Path = d.search(p.Path, steps(m[1]))
		p.Message = fmt.Sprintf("%q has a value of a wrong type; it must be %s", m[1], kindOf(m[2]))
	}
	return p
}

// kindOf says what a Go type is in YAML.
func kindOf(goType string) string {
	goType = strings.TrimPrefix(goType, "*")
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a string"
	}
	return "a map"
}

// search returns the path of the fields, in any element of the lists on the way.
func (d document) search(from, fields []string) []string {
	if len(fields) == 0 {
		return from
	}
	if at := below(from, fields[0]); d.at(at) != d.at(from) {
		return d.search(at, fields[1:])
	}
	for i := 0; d.at(below(from, strconv.Itoa(i))) != d.at(from); i++ {
		if at := d.search(below(from, strconv.Itoa(i)), fields); len(at) > len(from)+1 {
			return at
		}
	}
	return from
}

// validated is what upstream's validation says, and what it would say of
// NodeResourcesFit, whose validator it keeps under a name that it never looks up
// (validatePluginConfig, "NodeResourcesFitArgs").
func validated(c *config.KubeSchedulerConfiguration) []Problem {
	var errs []error
	if all := validation.ValidateKubeSchedulerConfiguration(c); all != nil {
		errs = append(errs, all)
	}
	var out []Problem
	for i, p := range c.Profiles {
		for j, pc := range p.PluginConfig {
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j)
			if fit, ok := pc.Args.(*config.NodeResourcesFitArgs); ok {
				errs = append(errs, validation.ValidateNodeResourcesFitArgs(path.Child("args"), fit))
			}
			if unknown, ok := pc.Args.(*runtime.Unknown); ok {
				out = append(out, ownArgs(steps(path.String()), pc.Name, unknown.Raw)...)
			} else if pc.Args == nil {
				out = append(out, ownArgs(steps(path.String()), pc.Name, nil)...)
			}
		}
	}
	return append(out, fieldErrors(errs)...)
}

func fieldErrors(errs []error) []Problem {
	var out []Problem
	for _, err := range flat(errs) {
		p := Problem{Rule: "scheduler/invalid", Severity: diag.Error, Message: err.Error()}
		var at *field.Error
		if errors.As(err, &at) {
			p.Path, p.Message = steps(at.Field), at.Field+": "+at.ErrorBody()
			if strings.Contains(p.Message, "queueSort") {
				// The value is a dump of Go's.
				p.Rule, p.Message = ruleQueueSort, at.Field+": "+at.Detail+"; all profiles share one queue"
			}
			if at.Type == field.ErrorTypeDuplicate {
				p.Message = at.Field + ": there is another one of the same name; keep one"
			}
		}
		out = append(out, p)
	}
	return out
}

// flat takes aggregates apart.
func flat(errs []error) []error {
	var out []error
	for _, err := range errs {
		var all utilerrors.Aggregate
		switch {
		case err == nil:
		case errors.As(err, &all):
			out = append(out, flat(all.Errors())...)
		default:
			out = append(out, err)
		}
	}
	return out
}

// ownArgs checks the arguments of a plugin of ours, at the path of its config.
func ownArgs(path []string, plugin string, raw []byte) []Problem {
	if !slices.Contains(args.Names(), plugin) {
		return nil
	}
	_, err := args.Decode(plugin, raw)
	var bad *args.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &bad):
		return []Problem{{Rule: "scheduler/args", Severity: diag.Error, Path: below(path, "args"), Message: err.Error()}}
	}
	var out []Problem
	for _, e := range bad.Problems {
		one := &args.Error{Plugin: plugin, Problems: field.ErrorList{e}}
		out = append(out, Problem{Rule: "scheduler/args", Severity: diag.Error, Path: below(below(path, "args"), steps(e.Field)...), Message: one.Error()})
	}
	return out
}
