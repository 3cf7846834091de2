#!/usr/bin/env bash
# Runs the tests of every package that starts goroutines with the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=1 # the race detector is C
starts='(^|[^.[:alnum:]_])go [[:alpha:]][[:alnum:]_.]*\(|\.Go\('
concurrent=$(grep -rlE --include='*.go' --exclude='*_test.go' "$starts" cmd compiler internal policy schedulerbin | xargs -n 1 dirname | sort -u)
# internal/sandbox starts programs and waits for them. schedulertest has no tests, and is
# run by those of plugins. The commands of cmd wait for one thing at a time, and linking
# them takes minutes.
left_out='internal/sandbox|schedulerbin/schedulertest|cmd/.*'
# These are called from many goroutines, and start none.
called='./schedulerbin/contain ./schedulerbin/plugins/gang/permit ./internal/workload/ownership ./internal/workload/yamldoc'
# vet has seen them without the detector.
go test -race -short -vet=off -timeout 15m $(grep -vxE "$left_out" <<<"$concurrent" | sed 's#^#./#') $called
