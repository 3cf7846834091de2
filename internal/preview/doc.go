// Package preview says what a plan would do to a cluster: it makes a scenario of
// what the plan changes, has it simulated on a snapshot beside the cluster as it
// is, and finds the policies' lines behind what becomes of each pod.
//
// The package must not know how anything is shown, and decides neither what is
// compiled nor where a pod goes.
package preview
