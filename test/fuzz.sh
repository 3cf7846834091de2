#!/usr/bin/env bash
# Runs each fuzz test of the project for the given time (as "30s").
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: fuzz.sh TIME}
grep -rlE '^func Fuzz[A-Z]\w*\(' --include='*_test.go' . | sort | while read -r file; do
	for name in $(grep -oE '^func Fuzz\w+' "$file" | cut -d' ' -f2); do
		echo "-- $(dirname "$file") $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 5x "$(dirname "$file")"
	done
done
