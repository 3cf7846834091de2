package gpumemory

import (
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/args"
)

// memory is an amount of bytes for each device of a node. It is a value, so that
// it lives on the stack: Filter and Score make one for each node.
type memory struct {
	bytes [args.MaxGPUDevices]int64
	count int
}

// The reasons why a node is not known to have devices. They name no node and no
// number, so that the framework counts equal ones.
const (
	ReasonNone     = "node says nothing of its GPU memory (annotation " + args.NodeGPUMemory + ", labels " + args.NodeGFDMemory + " and " + args.NodeGFDCount + ")"
	ReasonOwn      = "node's annotation " + args.NodeGPUMemory + " is no list of quantities such as 24Gi,24Gi"
	ReasonGFD      = "node's labels " + args.NodeGFDMemory + " (whole MiB) and " + args.NodeGFDCount + " (1 to 64) cannot be read"
	ReasonMIG      = "node's GPUs are sliced (MIG), whose indexes its labels do not tell; annotate it with " + args.NodeGPUMemory
	ReasonFree     = "node's label of free GPU memory is no whole number"
	ReasonFreeMany = "node has several GPUs and says only how much memory is free in all; annotate it with " + args.NodeGPUMemory
)

// capacity returns the memory of each device as the node says it, from the best
// source that it has, or the reason why that cannot be had. A source that is there
// and wrong is never passed over for a lesser one. estimated is true where the
// node says what is free, not what there is; the one device then has what is free
// on top of what the caller knows to be taken.
func (p *Plugin) capacity(node *v1.Node, into *memory) (reason string, estimated bool) {
	if list, ok := node.Annotations[args.NodeGPUMemory]; ok {
		if !parseList(list, into) {
			return ReasonOwn, false
		}
		return "", false
	}
	size, hasSize := node.Labels[args.NodeGFDMemory]
	number, hasNumber := node.Labels[args.NodeGFDCount]
	if hasSize {
		mebibytes, err := strconv.ParseInt(size, 10, 64)
		count, countErr := strconv.Atoi(number)
		switch {
		case err != nil || countErr != nil || mebibytes <= 0 || mebibytes > math.MaxInt64>>20 || count < 1 || count > args.MaxGPUDevices:
			return ReasonGFD, false
		case strings.Contains(node.Labels[args.NodeGFDProduct], "-MIG-"):
			return ReasonMIG, false
		}
		into.count = count
		for i := range count {
			into.bytes[i] = mebibytes << 20
		}
		return "", false
	}
	for _, label := range p.args.FreeLabels {
		text, ok := node.Labels[label.Key]
		if !ok {
			continue
		}
		amount, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || amount < 0 || amount > math.MaxInt64/label.Unit.Bytes():
			return ReasonFree, true
		case hasNumber && number != "1", p.hasSeveral(node):
			return ReasonFreeMany, true
		}
		into.count, into.bytes[0] = 1, amount*label.Unit.Bytes()
		return "", true
	}
	return ReasonNone, false
}

// hasSeveral reports whether the node's kubelet offers more than one device.
func (p *Plugin) hasSeveral(node *v1.Node) bool {
	for _, name := range p.args.WholeDeviceResources {
		if q, ok := node.Status.Allocatable[v1.ResourceName(name)]; ok && q.CmpInt64(1) > 0 {
			return true
		}
	}
	return false
}

// parseList reads "24Gi,24Gi,80Gi". It reports whether text is such a list.
func parseList(text string, into *memory) bool {
	last := ""
	for rest, more := text, true; more; {
		var word string
		word, rest, more = strings.Cut(rest, ",")
		word = strings.TrimSpace(word)
		if into.count == args.MaxGPUDevices {
			return false
		}
		// Devices of a node are mostly alike: a word that repeats is not parsed again.
		if word != last || into.count == 0 {
			q, err := resource.ParseQuantity(word)
			if err != nil || q.CmpInt64(args.LeastDeviceMemory) < 0 {
				return false
			}
			into.bytes[into.count] = q.Value()
		} else {
			into.bytes[into.count] = into.bytes[into.count-1]
		}
		last = word
		into.count++
	}
	return true
}
