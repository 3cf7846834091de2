package gpumemory

import "k8s.io/apimachinery/pkg/types"

// Running reports whether the factory's ledger has seen the pod run.
func (f *Factory) Running(uid types.UID) bool {
	f.ledger.mu.RLock()
	defer f.ledger.mu.RUnlock()
	return f.ledger.pods[uid].running
}

// Counted is what the factory's ledger takes to be in use beside what the node
// says is free.
func (f *Factory) Counted(node string) int64 {
	f.ledger.mu.RLock()
	defer f.ledger.mu.RUnlock()
	return f.ledger.counted[node]
}
