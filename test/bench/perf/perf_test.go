package perf

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	_ "k8s.io/component-base/logs/json/register" // a format that upstream's flags name
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	benchmark "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/utils/clock"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/contain"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/plugins/gang"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/registry"
	"github.com/kubectl-sched/kubectl-sched/test/bench/orphan"
)

var (
	cases = flag.String("cases", "", "file of cases, as upstream's; paths in it are from the folder where this runs")
	ours  = flag.Bool("ours", false, "have our plugins in the registry")
)

func TestMain(m *testing.M) {
	orphan.Then(func() { os.Exit(1) }) // and upstream's etcd with it, which is built to
	if err := benchmark.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// BenchmarkStandard runs the cases. Who enables the plugins is the configuration that a
// case names.
func BenchmarkStandard(b *testing.B) {
	if *cases == "" {
		b.Skip("no -cases: it is run by the command bench")
	}
	var plugins runtime.Registry
	if *ours {
		var err error
		plugins, err = registry.New(contain.Options{Metrics: contain.NewMetrics(), Budgets: contain.DefaultBudgets(), Clock: clock.RealClock{}},
			append(registry.Bundled(), registry.Plugin{Name: gang.Name, New: gang.New(nobody{}, gang.NewHolds(clock.RealClock{}))})...)
		if err != nil {
			b.Fatal(err)
		}
	}
	benchmark.RunBenchmarkPerfScheduling(b, *cases, "standard", plugins)
}

// nobody is told of gangs, of which there are none.
type nobody struct{}

func (nobody) Configure(string, *args.GangArgs)    {}
func (nobody) Tried(string, string, any, int)      {}
func (nobody) Held(string, string, int, time.Time) {}
