#!/bin/sh
# Reviews the working tree for each cluster of a fleet, of which there is a snapshot
# snapshots/NAME.snapshot, named as the policies' clusters block names the cluster.
# Clusters that come out the same are one part of the review. More arguments are passed
# on: review.sh --base origin/main -o markdown=comment.md
set -eu
for file in snapshots/*.snapshot; do
	[ -e "$file" ] || { echo "there is no snapshot in snapshots/" >&2; exit 2; }
	name=${file##*/}
	set -- --snapshot "${name%.snapshot}=$file" "$@"
done
exec kubectl sched review -p placement -f manifests -R "$@"
