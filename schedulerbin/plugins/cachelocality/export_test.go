package cachelocality

// Placed is the factory's count for the node, over all keys.
func (f *Factory) Placed(node string) (sum int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.heats {
		sum += h.placed(node)
	}
	return sum
}
