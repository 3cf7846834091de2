package lint

import "github.com/kubectl-sched/kubectl-sched/policy/diag"

// ignoreRules are those of what is said about findings: that they are to be ignored,
// weigh more or less, or are known.
func ignoreRules() []Rule {
	return []Rule{
		{ID: "ignore/no-reason", Severity: diag.Warning, Doc: "A comment or annotation that ignores a rule does not say why, and so ignores nothing.", Fix: "Say why, behind the rule."},
		{ID: "ignore/unknown-rule", Severity: diag.Warning, Doc: "What is to be ignored is no rule.", Fix: "Copy the rule from the end of the finding."},
		{ID: "ignore/unused", Severity: diag.Warning, Doc: "There is nothing to ignore where something is to be. It is looked for only where the rule had all that it needs.", Fix: "Take it out; --fix shows how."},
		{ID: "ignore/malformed", Severity: diag.Warning, Doc: "A comment begins as one that ignores, and goes on otherwise.", Fix: "Write sched:ignore RULE REASON."},
		{ID: "ignore/impossible", Severity: diag.Warning, Doc: "An error that stops compile and apply cannot be ignored, nor made less of.", Fix: "Mend the error."},
		{ID: "baseline/gone", Severity: diag.Info, Doc: "The baseline knows of a finding that is not there any more.", Fix: "Write the baseline again with --write-baseline."},
		{ID: "input/settings", Severity: diag.Error, Doc: "The settings file of lint says what is not known.", Fix: "Correct it as the message says."},
		{ID: "input/baseline", Severity: diag.Error, Doc: "A baseline file is not one.", Fix: "Write it with --write-baseline."},
	}
}
