package deploy

import (
	"errors"
	"fmt"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// election is the part of a configuration that says who leads.
type election struct {
	LeaderElection *struct {
		LeaderElect       *bool  `json:"leaderElect"`
		ResourceLock      string `json:"resourceLock"`
		ResourceName      string `json:"resourceName"`
		ResourceNamespace string `json:"resourceNamespace"`
	} `json:"leaderElection"`
	ClientConnection *struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"clientConnection"`
	Profiles []struct {
		SchedulerName string `json:"schedulerName"`
	} `json:"profiles"`
}

// Configured returns the KubeSchedulerConfiguration as it is deployed, which names
// the lease that our roles are for, and the names of its profiles in order. The
// text of config stays; where it says of leader election or of its connection what
// cannot work in a pod of ours, that is an error.
func Configured(config []byte, namespace string) (deployed []byte, profiles []string, err error) {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	var e election
	if err := yaml.Unmarshal(config, &e); err != nil {
		return nil, nil, fmt.Errorf("the configuration is no YAML: %w", err)
	}
	for i, p := range e.Profiles {
		if p.SchedulerName == "" {
			return nil, nil, fmt.Errorf("profiles[%d] has no schedulerName; without one it would be the default scheduler's", i)
		}
		profiles = append(profiles, p.SchedulerName)
	}
	if len(profiles) == 0 {
		return nil, nil, errors.New("the configuration has no profiles; without one it would be the default scheduler's")
	}
	if e.ClientConnection != nil && e.ClientConnection.Kubeconfig != "" {
		return nil, nil, fmt.Errorf("clientConnection.kubeconfig is %q, which is no file in the scheduler's pod; leave it out, and the pod's own account is used", e.ClientConnection.Kubeconfig)
	}
	l := e.LeaderElection
	if l == nil {
		deployed, err = elect(config, namespace)
		return deployed, profiles, err
	}
	if l.LeaderElect != nil && !*l.LeaderElect {
		return nil, nil, errors.New("leaderElection.leaderElect is false, and two replicas would schedule at once; leave it out")
	}
	if l.ResourceName != "" && l.ResourceName != Name || l.ResourceNamespace != "" && l.ResourceNamespace != namespace {
		return nil, nil, fmt.Errorf("leaderElection names lease %q in namespace %q; the roles are for %q in %q, so write that, or leave leaderElection out", l.ResourceName, l.ResourceNamespace, Name, namespace)
	}
	if l.ResourceName == "" || l.ResourceNamespace == "" {
		deployed, err = elect(config, namespace)
		return deployed, profiles, err
	}
	return config, profiles, nil
}

// elect names our lease in a configuration, and leaves the rest of its text, with
// the comments, as it is written.
func elect(config []byte, namespace string) ([]byte, error) {
	document, err := kyaml.Parse(string(config))
	if err != nil {
		return nil, fmt.Errorf("the configuration is no YAML: %w", err)
	}
	for _, set := range [][2]string{{"resourceName", Name}, {"resourceNamespace", namespace}} {
		if err := document.PipeE(kyaml.LookupCreate(kyaml.MappingNode, "leaderElection"), kyaml.SetField(set[0], kyaml.NewStringRNode(set[1]))); err != nil {
			return nil, fmt.Errorf("name the lease: %w", err)
		}
	}
	text, err := document.String()
	return []byte(text), err
}
