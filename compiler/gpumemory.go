package compiler

import (
	"fmt"
	"strconv"

	"github.com/kubectl-sched/kubectl-sched/compiler/nodeexpr"
	"github.com/kubectl-sched/kubectl-sched/compiler/profile"
	"github.com/kubectl-sched/kubectl-sched/internal/workload"
	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

const (
	perDeviceReason = "a resource request counts whole devices, and no field of a pod counts their memory one by one; the plugin GPUMemory of the bundled scheduler does"
	devicesReason   = "the downward API shows a container the devices that GPUMemory chose and wrote down"
	mebibyte        = 1 << 20
)

// prepareGPUMemory decides how a policy's gpuMemory is said: the size of the
// devices by node affinity, what is used of them by the plugin.
func (c *compilation) prepareGPUMemory(r *rule) {
	g := r.GPUMemory
	if g == nil {
		return
	}
	if g.MinDevice != "" {
		origin := r.author.origin("gpuMemory", "minDevice")
		bytes, err := args.DeviceMemory(g.MinDevice)
		if err != nil {
			c.report(finding{rule: "policy/gpu-memory", policy: r.Name, at: origin.Range, message: fmt.Sprintf("minDevice %s", err)})
			return
		}
		// The label counts whole MiB, and node affinity knows "more than" alone.
		least := (bytes + mebibyte - 1) / mebibyte
		r.nodes.required = append(r.nodes.required, statement{
			expr: nodeexpr.Greater(nodeexpr.Label(args.NodeGFDMemory), least-1), path: []string{"gpuMemory", "minDevice"}, origin: origin, field: "minDevice",
		})
	}
	if g.PerDevice == "" {
		return
	}
	origin := r.author.origin("gpuMemory", "perDevice")
	if _, err := args.DeviceMemory(g.PerDevice); err != nil {
		c.report(finding{rule: "policy/gpu-memory", policy: r.Name, at: origin.Range, message: fmt.Sprintf("perDevice %s", err)})
		return
	}
	said := map[string]any{}
	if g.Prefer != "" {
		said["prefer"] = g.Prefer
	}
	wish, err := profile.Plugin(args.GPUMemory, said, perDeviceReason, profile.Origin(r.author.origin("gpuMemory")))
	if err != nil {
		c.report(finding{rule: "policy/gpu-memory", policy: r.Name, at: origin.Range, message: err.Error()})
		return
	}
	r.need(wish)
	r.deviceKeys = []keyWish{{
		field: workload.TemplateAnnotations, key: args.PodGPUMemory, value: g.PerDevice, level: LevelPlugin, reason: "tells GPUMemory what the pods need on each device; " + perDeviceReason, origin: origin,
	}}
	if g.Devices > 1 {
		r.deviceKeys = append(r.deviceKeys, keyWish{
			field: workload.TemplateAnnotations, key: args.PodGPUDevices, value: strconv.Itoa(g.Devices), level: LevelPlugin,
			reason: "tells GPUMemory on how many devices", origin: r.author.origin("gpuMemory", "devices"),
		})
	}
}

// gatherGPUMemory is the gpuMemory intent.
func gatherGPUMemory(d *draft, r *rule) {
	if len(r.deviceKeys) == 0 {
		return
	}
	d.keys = append(d.keys, r.deviceKeys...)
	origin := r.author.origin("gpuMemory")
	if r.GPUMemory.Containers != nil {
		origin = r.author.origin("gpuMemory", "containers")
	}
	d.devices = append(d.devices, deviceWish{containers: r.GPUMemory.Containers, reason: devicesReason, origin: origin})
}
