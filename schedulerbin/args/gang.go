package args

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// GangArgs are the arguments of the plugin Gang.
type GangArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Timeout is how long members of a gang may hold what they were given while
	// others are missing; then all is released. Default 5m, which is also how
	// long upstream's own plugin waits (gangscheduling, Permit); from 1s to 15m,
	// beyond which the framework cuts every wait short.
	Timeout metav1.Duration `json:"timeout"`
	// OnPartial is what becomes of a gang of which a part is bound, as after a
	// failed bind, once Timeout is over. Default report.
	OnPartial OnPartial `json:"onPartial"`
	// Mode is how gangs are placed. Default auto.
	Mode GangMode `json:"mode"`
}

// The bounds of GangArgs.Timeout.
const (
	MinGangTimeout     = time.Second
	DefaultGangTimeout = 5 * time.Minute
	MaxGangTimeout     = 15 * time.Minute
)

// OnPartial is what is done about a gang of which a part alone is bound.
type OnPartial string

// What can be done about it.
const (
	// Report says so in events, and leaves the bound members where they are.
	Report OnPartial = "report"
	// Evict evicts the bound members, so that the gang starts whole.
	Evict OnPartial = "evict"
)

// GangMode is the machinery that places gangs.
type GangMode string

// The machineries.
const (
	// ModeAuto is permit where the feature gate GenericWorkload is switched off, else
	// native where the API server has PodGroups, else virtual.
	ModeAuto GangMode = "auto"
	// ModeNative uses the API's own PodGroups.
	ModeNative GangMode = "native"
	// ModeVirtual feeds the in-tree pod-group cycle with groups that are made of
	// CRD objects and labels.
	ModeVirtual GangMode = "virtual"
	// ModePermit does without the in-tree pod-group cycle: members are placed one by
	// one, and wait at Permit for the others.
	ModePermit GangMode = "permit"
)

// PluginName returns Gang.
func (*GangArgs) PluginName() string { return Gang }

func (a *GangArgs) setDefaults() {
	a.Timeout.Duration = DefaultGangTimeout
	a.OnPartial = Report
	a.Mode = ModeAuto
}

func (a *GangArgs) validate() problems {
	found := validateType(a.TypeMeta, a.PluginName())
	if t := a.Timeout.Duration; t < MinGangTimeout || t > MaxGangTimeout {
		found = append(found, invalid(field.NewPath("timeout"), t.String(),
			fmt.Sprintf("is out of bounds; use %s to %s", MinGangTimeout, MaxGangTimeout)))
	}
	found = append(found, oneOf(field.NewPath("onPartial"), a.OnPartial, Report, Evict)...)
	return append(found, oneOf(field.NewPath("mode"), a.Mode, ModeAuto, ModeNative, ModeVirtual, ModePermit)...)
}
