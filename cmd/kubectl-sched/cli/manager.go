package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/apply"
)

// managerFlag names the field manager of a set, as kubectl apply's flag does.
type managerFlag struct{ name string }

func (f *managerFlag) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "field-manager", "", fmt.Sprintf("Name of the manager that fields are owned under, recorded with the set (default %q, or the one recorded)", apply.FieldManager))
}
