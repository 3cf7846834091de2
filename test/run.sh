#!/usr/bin/env bash
# All tests of the project: unit, golden, property, real (sandbox) and a smoke
# run of each fuzz test. Needs Go, a C compiler (for the race detector), a Chromium
# (which is installed where apt-get can do it), and nothing else: services are started by the tests on loopback and ended by them.
set -euo pipefail
cd "$(dirname "$0")/.."
# Everything is compiled as it is released: Go keeps what it compiled by these settings,
# and with others for some of it the whole of Kubernetes would be compiled once more.
export CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}"

echo "== build the plugin as users do"
go build -o bin/kubectl-sched ./cmd/kubectl-sched
export SCHED_PLUGIN_BIN=$PWD/bin/kubectl-sched

echo "== unit, golden and property tests"
# Packages that start a control plane come after, one at a time: two would only
# fight for the two cores.
real=$(go list -f '{{$p := .ImportPath}}{{range .TestImports}}{{if eq . "github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"}}{{$p}}{{"\n"}}{{end}}{{end}}{{range .XTestImports}}{{if eq . "github.com/kubectl-sched/kubectl-sched/internal/sandbox/sandboxtest"}}{{$p}}{{"\n"}}{{end}}{{end}}' ./... | sort -u)
light=$(comm -23 <(go list ./... | sort) <(echo "$real"))
go test -timeout 15m $light

echo "== the page of a review, in a browser"
test/chromium.sh
(cd test/browser && go test -timeout 15m ./...)

echo "== race detector on what is concurrent"
test/race.sh

echo "== real: against API servers on loopback"
go test -p 1 -timeout 25m $real

echo "== examples that are scripts"
examples/run-it-yourself/run.sh

echo "== the demo"
test/demo/demo.sh

echo "== fuzz smoke"
test/fuzz.sh 3s
