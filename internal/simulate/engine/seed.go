package engine

// seed decides what nothing else decides. The same seed decides the same way
// between the same names, whatever else there is: an unrelated change does not
// move a pod that only a tie had placed.
type seed uint64

// of returns a number for the name. Different names have different numbers, as
// good as surely.
func (s seed) of(name string) uint64 {
	// FNV-1a, and then mixed: neighbouring names must not get neighbouring numbers.
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return mix(h ^ uint64(s))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), a permutation.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
