#!/usr/bin/env bash
# Runs each fuzz test of the project for the given time (as "30s").
#
# Our own packages alone have the counters by which inputs are chosen. "go test -fuzz"
# puts them into all that is linked, and so compiles Kubernetes and CUE again: that takes
# minutes, and a run of some seconds has nothing of it. For a long run say "all" behind
# the time, and everything has them.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: fuzz.sh TIME [all]}
counters=(-gcflags="$(go list -m)/...=-d=libfuzzer")
if [[ ${2:-} == all ]]; then counters=(-fuzz .); fi
work=$(mktemp -d "${TMPDIR:-/tmp}/kubectl-sched-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
corpus=$(go env GOCACHE)/fuzz # where "go test -fuzz" keeps what it has found
for dir in $(grep -rlE '^func Fuzz[A-Z]\w*\(' --include='*_test.go' . | xargs -n 1 dirname | sort -u); do
	# One program for all the fuzz tests of a package.
	go test -c "${counters[@]}" -o "$work/fuzz.test" "$dir"
	for name in $(grep -hoE '^func Fuzz[A-Z]\w*' "$dir"/*_test.go | cut -d' ' -f2); do
		echo "-- $dir $name"
		if ! (cd "$dir" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$time" -test.fuzzminimizetime 5x \
			-test.fuzzcachedir "$corpus/$(go list .)") 2>&1 | tee "$work/log"; then
			# The end of the time itself can come out as an error (golang/go#75804, mended in
			# Go 1.27): that alone, with no input that failed.
			[[ $(grep -A 2 -- '^--- FAIL' "$work/log" | tail -n +2 | tr -d ' \n') == contextdeadlineexceededFAIL ]]
			echo "the time was over; no input failed"
		fi
	done
done
