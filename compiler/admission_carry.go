package compiler

import (
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/compiler/admission"
	"github.com/kubectl-sched/kubectl-sched/compiler/capability"
	"github.com/kubectl-sched/kubectl-sched/compiler/cel"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/gangkey"
)

// carry gathers what a policy puts into metadata, gates and containers, as the
// intents gather it for a template.
func (g *gathering) carry(r *rule, when admission.Case) {
	d := g.c.anyPod()
	gatherGates(d, r)
	gatherCache(d, r)
	gatherGPUMemory(d, r)
	for _, w := range d.keys {
		g.key(when, w.field, w.key, w.value)
	}
	for _, w := range d.held {
		g.set.Gates = append(g.set.Gates, admission.Gate{When: admission.Any(when), Name: w.name})
	}
	for _, w := range d.devices {
		g.set.Devices = append(g.set.Devices, admission.Devices{When: admission.Any(when), Variable: args.VisibleDevices, Annotation: args.PodGPUIndex, Containers: w.containers})
	}
	g.gang(r, when)
}

func (g *gathering) key(when admission.Case, field workload.Field, key, value string) {
	g.set.Keys = append(g.set.Keys, admission.Key{When: admission.Any(when), Annotation: field == workload.TemplateAnnotations, Key: key, Value: value})
}

// gang marks pods as members by labels, which need no object for each workload to
// come. Pods that name a group themselves are left alone.
func (g *gathering) gang(r *rule, when admission.Case) {
	if r.Gang == nil {
		return
	}
	d := g.c.anyPod()
	d.gang = &gang{form: capability.PodGroupLabels}
	d.gangWithin(r)
	if _, ok := d.gangMin(r); !ok {
		return
	}
	named := "!" + "variables.labels.exists(k, k in " + cel.List(gangkey.Labels()) + `) && variables.spec.?schedulingGroup.?podGroupName.orValue("") == ""`
	free := when.And("!"+admission.DaemonSet, named)
	g.set.Keys = append(g.set.Keys,
		admission.Key{
			When: admission.Any(free), Key: gangkey.LabelOldest, Computed: true,
			Value: `variables.kind == "Pod" ? ` + cel.Quote(r.Name) + ` : variables.name.size() < 64 ? variables.name : ""`,
		},
		admission.Key{When: admission.Any(free), Key: gangkey.LabelMinAvailable, Value: strconv.Itoa(int(r.Gang.Min))},
		admission.Key{When: admission.Any(free.And(`variables.kind == "CronJob"`)), Annotation: true, Key: gangkey.PerAnnotation, Value: gangkey.PerController})
}
