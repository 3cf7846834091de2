#!/usr/bin/env bash
# Formats and vets every CUE file of the project with the plain cue command, so
# that what we ship is what an editor accepts too. Documents import the schema
# from the module at the root.
set -euo pipefail
cd "$(dirname "$0")/.."
export CUE_REGISTRY=none
unformatted=$(bin/cue fmt --check --files policy catalog examples test/charts 2>&1) || {
	echo "not formatted, run bin/cue fmt --files:" >&2
	echo "$unformatted" >&2
	exit 1
}
bin/cue vet ./policy ./catalog
for dir in $(find catalog/* examples test/charts -name '*.cue' -not -path '*/cue.mod/*' -printf '%h\n' | sort -u); do
	bin/cue vet -c=false "./$dir" || { echo "cue vet failed in $dir" >&2; exit 1; }
done
