package lint

import "slices"

// elsewhere are the rules of what is found where something is read, compiled or
// applied. They run there; here they are only described.
func elsewhere() []Rule {
	return slices.Concat(inputRules(), languageRules(), compilerRules(), applyRules(), ignoreRules(), testRules())
}
