// Package sandbox starts a real Kubernetes control plane on the loopback
// interface: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and,
// in place of kubelets, kwok. It maps Options and a file of node pools to a
// running cluster and a kubeconfig, for tests and for trying things out.
//
// Nothing is downloaded: all parts are Go modules, linked into the one binary
// cmd/sched-sandbox, which Binary builds when it is missing. Each part is a
// process of its own, so that a test can kill one and start it again. All of
// them end with the process that started them, however that ends: each holds
// the reading end of a pipe whose writing end is this process's alone.
//
//	sb, err := sandbox.Start(ctx, sandbox.Options{})
//	if err != nil { … }           // names the part that failed and shows the end of its log
//	defer sb.Stop()
//	pools, err := sandbox.ParsePools("pools.yaml", data)
//	_, err = sb.Nodes(ctx, pools) // returns when all nodes are Ready
//	clientset, err := kubernetes.NewForConfig(sb.RESTConfig())
//
// Tests use sandboxtest.ForTest, which does all of this.
//
// The pods "run" as follows: a pod that is bound to a node becomes Ready at
// once; a pod of a Job succeeds at once, or after the duration in its annotation
// RunForAnnotation, which works on any other pod too; a pod that is deleted goes
// at once. No container ever runs, so there are no logs, no exec and no network.
//
// Data is kept without fsync, unless Options.Fsync is set: it outlives a part that
// is killed, not a machine that loses power.
//
// The package must not know of policies, compilers or the plugin: they come to
// the sandbox as any user's client does, with a kubeconfig. It must not import
// k8s.io/kubernetes, so that tests that use it stay quick to build.
package sandbox
