package engine

import (
	"fmt"
	"slices"

	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// Profile is a scheduler profile with all defaults.
type Profile = config.KubeSchedulerProfile

// Decode returns the KubeSchedulerConfiguration that the text holds, with all
// defaults. The error is of the decoder, which is strict.
func Decode(text []byte) (*config.KubeSchedulerConfiguration, error) {
	if err := Gates(); err != nil {
		return nil, err
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	c, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("this is a %T and not a KubeSchedulerConfiguration", object)
	}
	return c, nil
}

// Stock returns the profile of kube-scheduler without any configuration.
func Stock() (config.KubeSchedulerProfile, error) {
	if err := Gates(); err != nil {
		return config.KubeSchedulerProfile{}, err
	}
	c, err := latest.Default()
	if err != nil {
		return config.KubeSchedulerProfile{}, err
	}
	return c.Profiles[0], nil
}

// WithStock returns the profiles, and the stock one before them if none is called
// as it is.
func WithStock(profiles []config.KubeSchedulerProfile) ([]config.KubeSchedulerProfile, error) {
	stock, err := Stock()
	if err != nil || slices.ContainsFunc(profiles, func(p config.KubeSchedulerProfile) bool { return p.SchedulerName == stock.SchedulerName }) {
		return profiles, err
	}
	return append([]config.KubeSchedulerProfile{stock}, profiles...), nil
}
