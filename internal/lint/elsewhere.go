package lint

// elsewhere are the rules of what is found where something is read, compiled or
// applied.
func elsewhere() []Rule { return nil }
