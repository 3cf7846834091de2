package args_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	gang := args.GangArgs{Timeout: metav1.Duration{Duration: 5 * time.Minute}, OnPartial: args.Report, Mode: args.ModeAuto}
	short := gang
	short.Timeout.Duration = 90 * time.Second
	short.OnPartial = args.Evict
	typed := gang
	typed.TypeMeta = metav1.TypeMeta{APIVersion: args.APIVersion, Kind: "GangArgs"}
	cache := args.CacheLocalityArgs{
		DatasetKeys: []string{args.PodDatasets, "dataset"}, WarmKeys: []string{"cache/warm-for"},
		DrainedKeys: []string{"cache/drained"}, PenaltyPerPod: 5,
	}
	open := cache
	open.DrainedKeys = []string{}
	open.PenaltyPerPod = 0
	gpu := args.GPUMemoryArgs{
		Prefer: args.BestFit, FreeLabels: []args.FreeLabel{{Key: "free", Unit: args.MiB}}, WholeDeviceResources: []string{"nvidia.com/gpu"},
	}
	tests := []struct {
		name, plugin, raw string
		want              args.Args
	}{
		{"nothing", args.Gang, "", &gang},
		{"null", args.Gang, "null", &gang},
		{"an empty document", args.Gang, "---\n# none\n", &gang},
		{"a null field", args.Gang, `{"timeout": null}`, &gang},
		{"JSON", args.Gang, `{"timeout": "90s", "onPartial": "evict"}`, &short},
		{"YAML", args.Gang, "timeout: 1m30s\nonPartial: evict\n", &short},
		{"YAML in flow style", args.Gang, "{timeout: 90s, onPartial: evict}", &short},
		{"a stated kind", args.Gang, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: GangArgs\n", &typed},
		{"an empty list and a zero are said, not left out", args.CacheLocality, "drainedKeys: []\npenaltyPerPod: 0", &open},
		{"a list of objects replaces the default", args.GPUMemory, "prefer: best-fit\nfreeLabels: [{key: free, unit: MiB}]", &gpu},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := args.Decode(test.plugin, []byte(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, plugin, raw string
		// path is the field that the first problem names; empty where the text as
		// a whole is wrong.
		path, want string
	}{
		{"unknown field", args.Gang, `{"timeuot": "5m"}`, "timeuot", `timeuot: there is no such field; did you mean "timeout"? (fields are "mode", "onPartial", "timeout")`},
		{"wrong case", args.Gang, `{"onpartial": "evict"}`, "onpartial", `onpartial: there is no such field; did you mean "onPartial"?`},
		{"duplicate key", args.Gang, `{"mode": "auto", "mode": "permit"}`, "mode", `mode: the key is there twice; keep one`},
		{"duplicate key in YAML", args.Gang, "mode: auto\nmode: permit\n", "", `key "mode" already set`},
		{"no duration", args.Gang, "timeout: soon", "timeout", `timeout: "soon" is wrong here; it must be a duration such as "90s" or "5m"`},
		{"a number for a duration", args.Gang, "timeout: 5", "timeout", `it must be a duration`},
		{"zero is not the default", args.Gang, "timeout: 0s", "timeout", `timeout: "0s" is out of bounds; use 1s to 15m0s`},
		{"too long", args.Gang, "timeout: 20m", "timeout", `use 1s to 15m0s`},
		{"word", args.Gang, "onPartial: evcit", "onPartial", `onPartial: "evcit" is not allowed; did you mean "evict"? (one of "report", "evict")`},
		{"word in the wrong case", args.Gang, "mode: Native", "mode", `did you mean "native"?`},
		{"another plugin's kind", args.Gang, "kind: GPUMemoryArgs", "kind", `write "GangArgs"`},
		{"another version", args.Gang, "apiVersion: v1", "apiVersion", `write "kubescheduler.config.k8s.io/v1"`},
		{"a list", args.Gang, "[]", "", `"[]" is wrong here; it must be an object`},
		{"two documents", args.Gang, "mode: auto\n---\nmode: permit\n", "", "two YAML documents"},
		{"no YAML", args.Gang, "mode: [", "", "neither JSON nor YAML"},
		{"a string for a number", args.CacheLocality, `penaltyPerPod: "5"`, "penaltyPerPod", "it must be a whole number"},
		{"a fraction", args.CacheLocality, `penaltyPerPod: 1.5`, "penaltyPerPod", "it must be a whole number"},
		{"out of bounds", args.CacheLocality, `penaltyPerPod: 101`, "penaltyPerPod", `penaltyPerPod: "101" is out of bounds; use 0 to 100`},
		{"no key", args.CacheLocality, `warmKeys: ["not a key"]`, "warmKeys[0]", "cannot be the key of a label"},
		{"an element of another type", args.CacheLocality, `warmKeys: [5]`, "warmKeys[0]", "it must be a string"},
		{"no list", args.CacheLocality, `warmKeys: cache/warm-for`, "warmKeys", "it must be a list"},
		{"a key twice", args.CacheLocality, `drainedKeys: [a, a]`, "drainedKeys[1]", "is there twice"},
		{"no dataset key", args.CacheLocality, `datasetKeys: []`, "datasetKeys", "name at least one key"},
		{"unknown field in a list", args.GPUMemory, `freeLabels: [{key: free, units: GB}]`, "freeLabels[0].units", `did you mean "unit"? (fields are "key", "unit")`},
		{"duplicate key in a list", args.GPUMemory, `{"freeLabels": [{"key": "a", "key": "b", "unit": "GB"}]}`, "freeLabels[0].key", "there twice"},
		{"no unit", args.GPUMemory, `freeLabels: [{key: free}]`, "freeLabels[0].unit", `use one of "MB", "MiB", "GB", "GiB"`},
		{"unknown plugin", "gang", "", "", `did you mean "Gang"?`},
		{"unlike any plugin", "NodeAffinity", "", "", `"CacheLocality", "GPUMemory", "Gang"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := args.Decode(test.plugin, []byte(test.raw))
			if err == nil {
				t.Fatalf("got %+v; want an error", got)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error\n%v\nwant in it\n%s", err, test.want)
			}
			var said *args.Error
			if test.path == "" {
				return
			}
			if !errors.As(err, &said) {
				t.Fatalf("got a %T; want an *args.Error", err)
			}
			if got := said.Problems[0].Field; got != test.path {
				t.Errorf("got path %q, want %q", got, test.path)
			}
		})
	}
}

// TestDecodeTellsAll holds that one run of the linter shows every mistake.
func TestDecodeTellsAll(t *testing.T) {
	t.Parallel()
	_, err := args.Decode(args.Gang, []byte("timeuot: 5m\nmode: 3\nonPartial: [x]\n"))
	var said *args.Error
	if !errors.As(err, &said) {
		t.Fatalf("got %v; want an *args.Error", err)
	}
	if len(said.Problems) != 3 {
		t.Errorf("got %d problems, want 3:\n%v", len(said.Problems), err)
	}
}

// TestEncodeIsDecodeBackwards holds that what the compiler writes, the factory
// reads as it was meant.
func TestEncodeIsDecodeBackwards(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := &args.GangArgs{
			Timeout:   metav1.Duration{Duration: time.Duration(rapid.Int64Range(int64(args.MinGangTimeout), int64(args.MaxGangTimeout)).Draw(t, "timeout"))},
			OnPartial: rapid.SampledFrom([]args.OnPartial{args.Report, args.Evict}).Draw(t, "onPartial"),
			Mode:      rapid.SampledFrom([]args.GangMode{args.ModeAuto, args.ModeNative, args.ModeVirtual, args.ModePermit}).Draw(t, "mode"),
		}
		raw, err := args.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := args.FromObject[*args.GangArgs](args.Gang, raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestDefaultsAreValid holds that a plugin without arguments starts, and that
// each plugin's arguments know whose they are.
func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range args.Names() {
		want, err := args.Default(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := want.PluginName(); got != name {
			t.Errorf("the arguments of %s say that they are for %s", name, got)
		}
		raw, err := args.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := args.Decode(name, raw.Raw)
		if err != nil {
			t.Errorf("the defaults of %s are refused: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestFromObject(t *testing.T) {
	t.Parallel()
	got, err := args.FromObject[*args.GangArgs](args.Gang, nil)
	if err != nil || got.Mode != args.ModeAuto {
		t.Errorf("got %+v, %v without arguments; want the defaults", got, err)
	}
	if _, err := args.FromObject[*args.GangArgs](args.Gang, &metav1.Status{}); err == nil {
		t.Error("another object is taken for arguments")
	}
	if _, err := args.FromObject[*args.GangArgs](args.GPUMemory, &runtime.Unknown{}); err == nil {
		t.Error("another plugin's arguments are taken for a gang's")
	}
}

// FuzzDecode holds that no text makes the decoder panic, and that what it
// accepts is accepted again after it was encoded.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "null", `{"timeout":"5m"}`, "mode: auto\n", `{"freeLabels":[{"key":"a","unit":"GB"}]}`, "a: &a [*a]", "---\n---\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, name := range args.Names() {
			got, err := args.Decode(name, []byte(raw))
			if err != nil {
				continue
			}
			again, err := args.Encode(got)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := args.Decode(name, again.Raw); err != nil {
				t.Errorf("accepted %q and refused %s: %v", raw, again.Raw, err)
			}
		}
	})
}
