package policy

import "embed"

// ModulePath is the path of the CUE module that the schema is published as,
// without its major version. The schema itself is the package
// ModulePath + "/policy".
const ModulePath = "github.com/kubectl-sched/kubectl-sched"

// ModuleMajor is the major version of that CUE module.
const ModuleMajor = "v0"

// SchemaVersion is the version of the schema that this build carries. It
// changes whenever the schema does, so that a vendored copy can be told to be
// older or newer.
const SchemaVersion = "v0.1.0"

// SchemaLanguage is the CUE language version that the schema is written in.
const SchemaLanguage = "v0.15.0"

//go:embed schema.cue schema_tests.cue
var schema embed.FS

// Schema returns the schema's files. They are the same that a document's import
// of ModulePath + "/policy" resolves to.
func Schema() embed.FS { return schema }
