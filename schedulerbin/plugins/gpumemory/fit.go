package gpumemory

import "github.com/kubectl-sched/kubectl-sched/schedulerbin/args"

// take subtracts what a pod holds.
func (m *memory) take(bytes int64, on devices) {
	for i := range m.count {
		if on.has(i) {
			m.bytes[i] -= bytes
		}
	}
}

// fitting are the devices that have the bytes free, and how many.
func (m *memory) fitting(bytes int64) (fit devices, count int) {
	for i := range m.count {
		if m.bytes[i] >= bytes {
			fit = fit.with(i)
			count++
		}
	}
	return fit, count
}

// choose returns the devices that a pod gets by the preference, and whether there
// are enough. Of equal devices the lower index is taken.
func (m *memory) choose(n need, prefer args.DevicePreference) (chosen devices, ok bool) {
	fit, count := m.fitting(n.Bytes)
	if count < n.Devices {
		return 0, false
	}
	for range n.Devices {
		best := -1
		for i := range m.count {
			if !fit.has(i) || chosen.has(i) {
				continue
			}
			if best < 0 || prefer == args.BestFit && m.bytes[i] < m.bytes[best] || prefer != args.BestFit && m.bytes[i] > m.bytes[best] {
				best = i
			}
		}
		chosen = chosen.with(best)
	}
	return chosen, true
}

// maxWaiting is how many pods without a device are weighed exactly on one node.
const maxWaiting = 8

// maxSteps bounds the search. With 8 devices and 3 pods it takes a few hundred.
const maxSteps = 20_000

// search finds whether pods fit together.
type search struct {
	free  memory
	pods  []need
	steps int
}

// holds reports whether all pods fit together, each on devices of its own choice.
// A search that is cut short says no: the node is then left out of this cycle.
func (m *memory) holds(pods []need) bool {
	s := search{free: *m, pods: pods}
	return s.place(0, 0, 0)
}

// place places the pods from pod on, of the first of which so many devices are
// chosen already, all of them before device from.
func (s *search) place(pod, chosen, from int) bool {
	if pod == len(s.pods) {
		return true
	}
	n := s.pods[pod]
	if chosen == n.Devices {
		return s.place(pod+1, 0, 0)
	}
	if s.steps++; s.steps > maxSteps {
		return false
	}
	for i := from; i < s.free.count; i++ {
		if s.free.bytes[i] < n.Bytes || s.triedAlike(from, i) {
			continue
		}
		s.free.bytes[i] -= n.Bytes
		if s.place(pod, chosen+1, i+1) {
			return true
		}
		s.free.bytes[i] += n.Bytes
	}
	return false
}

// triedAlike reports whether a device from from up to i has exactly as much free
// as i: what failed with that one fails with i, which has fewer devices after it.
func (s *search) triedAlike(from, i int) bool {
	for j := from; j < i; j++ {
		if s.free.bytes[j] == s.free.bytes[i] {
			return true
		}
	}
	return false
}
