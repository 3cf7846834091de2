// Command etcd is etcd as it is released, which ends with the program that started it:
// upstream's benchmark leaves its own behind when it is killed. It must not know what is
// stored in it, nor by whom.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"github.com/kubectl-sched/kubectl-sched/test/bench/orphan"
)

func main() {
	orphan.Then(func() { os.Exit(1) })
	etcdmain.Main(os.Args)
}
