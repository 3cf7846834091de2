package diag

import "slices"

// Nearest returns the candidate that word was most likely meant to be, and
// whether there is one: the edit distance (a swap of neighbours counts once)
// may be at most a third of the word's length, and at least one is allowed.
// Between equally near candidates the first in sorted order wins.
func Nearest(word string, candidates []string) (string, bool) {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best, best != ""
}

// editDistance is the optimal string alignment distance of a and b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
