package sandbox

import (
	"fmt"
	"strings"
	"time"

	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeatstages "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/yaml"
)

// RunForAnnotation on a pod is how long it runs before it succeeds, as a Go
// duration ("90s"). Without it a Job's pod succeeds at once and any other pod
// runs for ever.
const RunForAnnotation = "sandbox.kubectl-sched.github.io/run-for"

// heartbeatInterval is how often a fake node reports, give or take a fifth.
const heartbeatInterval = 4 * time.Minute

// kwokConfiguration returns kwok's configuration: how fast it works, and the
// stages that nodes and pods go through. The stages are kwok's own, changed
// where a test needs to decide.
func kwokConfiguration() ([]byte, error) {
	documents := []map[string]any{{
		"apiVersion": "config.kwok.x-k8s.io/v1alpha1",
		"kind":       "KwokConfiguration",
		"metadata":   map[string]any{"name": "sandbox"},
		"options": map[string]any{
			"podPlayStageParallelism":   16,
			"nodePlayStageParallelism":  16,
			"podsOnNodeSyncParallelism": 4,
		},
	}}
	for _, build := range []func() (stage, error){nodeInit, nodeHeartbeat, podReady, jobComplete, timedComplete, podDelete, volumeProvision, volumeDelete} {
		s, err := build()
		if err != nil {
			return nil, fmt.Errorf("stages of kwok: %w", err)
		}
		documents = append(documents, s)
	}
	var out strings.Builder
	for _, document := range documents {
		data, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("stages of kwok: %w", err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return []byte(out.String()), nil
}

// nodeInit makes a node Ready that nobody has spoken for yet. Upstream's stage
// also brings back a node that a test has set to not Ready; this one does not.
func nodeInit() (stage, error) {
	s, err := parseStage(nodestages.DefaultNodeInit)
	if err != nil {
		return nil, err
	}
	return s, s.setSelector(condition{Key: readyStatus, Operator: "NotIn", Values: []string{"True", "False"}})
}

// nodeHeartbeat reports a node's health, seldom enough for thousands of nodes.
func nodeHeartbeat() (stage, error) {
	s, err := parseStage(heartbeatstages.DefaultNodeHeartbeat)
	if err != nil {
		return nil, err
	}
	return s, s.setSpec("delay", map[string]any{
		"durationMilliseconds":       (heartbeatInterval - heartbeatInterval/5).Milliseconds(),
		"jitterDurationMilliseconds": (heartbeatInterval + heartbeatInterval/5).Milliseconds(),
	})
}

func podReady() (stage, error)  { return parseStage(podstages.DefaultPodReady) }
func podDelete() (stage, error) { return parseStage(podstages.DefaultPodDelete) }

// jobComplete ends a Job's pod at once, unless the annotation says when.
func jobComplete() (stage, error) {
	s, err := parseStage(podstages.DefaultPodComplete)
	if err != nil {
		return nil, err
	}
	return s, s.setSelector(
		condition{Key: ".metadata.deletionTimestamp", Operator: "DoesNotExist"},
		condition{Key: ".status.phase", Operator: "In", Values: []string{"Running"}},
		condition{Key: ".metadata.ownerReferences.[].kind", Operator: "In", Values: []string{"Job"}},
		condition{Key: runFor, Operator: "DoesNotExist"},
	)
}

// timedComplete ends a pod after the duration in its annotation.
func timedComplete() (stage, error) {
	s, err := parseStage(podstages.DefaultPodComplete)
	if err != nil {
		return nil, err
	}
	s["metadata"] = map[string]any{"name": "pod-complete-timed"}
	if err := s.setSpec("delay", map[string]any{"durationFrom": map[string]any{"expressionFrom": runFor}}); err != nil {
		return nil, err
	}
	return s, s.setSelector(
		condition{Key: ".metadata.deletionTimestamp", Operator: "DoesNotExist"},
		condition{Key: ".status.phase", Operator: "In", Values: []string{"Running"}},
		condition{Key: runFor, Operator: "Exists"},
	)
}

// The expressions (of jq) that the stages select by.
const (
	readyStatus = `.status.conditions.[] | select( .type == "Ready" ) | .status`
	runFor      = `.metadata.annotations["` + RunForAnnotation + `"]`
)

// stage is a Stage document of kwok.
type stage map[string]any

// condition is one condition of a stage's selector.
type condition struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

func parseStage(text string) (stage, error) {
	var s stage
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	return s, nil
}

// setSelector makes the stage wait for all of conditions and nothing else.
func (s stage) setSelector(conditions ...condition) error {
	return s.setSpec("selector", map[string]any{"matchExpressions": conditions})
}

func (s stage) setSpec(field string, value any) error {
	spec, ok := s["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("kwok's stage %v has no spec", s["metadata"])
	}
	spec[field] = value
	return nil
}
