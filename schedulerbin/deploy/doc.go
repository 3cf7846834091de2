// Package deploy renders the bundled scheduler as objects of a cluster: account and
// roles, the configuration by the hash of its content, two replicas, and the
// admission policies that keep its account and approvals of gates to what they are
// for. It maps Options and, if there is one, a kustomize Component of the user's to
// a list of objects.
//
// It must not know a cluster, nor policies: what profiles the configuration has is
// given.
package deploy
