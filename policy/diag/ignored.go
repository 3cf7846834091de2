package diag

// Ignored is a Finding that somebody has said is meant.
type Ignored struct {
	Finding Finding `json:"finding"`
	// Reason is why, in the words of who said so.
	Reason string `json:"reason"`
	// Range is where that is written.
	Range Range `json:"range"`
}
