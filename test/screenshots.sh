#!/usr/bin/env bash
# Makes the pictures of docs/images from a real review of a made-up change.
set -euo pipefail
cd "$(dirname "$0")/.."
test/chromium.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
plugin=$PWD/bin/kubectl-sched images=$PWD/docs/images
mkdir -p "$images"
go run ./test/reviewed/write -plugin "$plugin" -dir "$dir"
(cd "$dir/repository" && "$plugin" review --base main --head change -p placement -f manifests -R --snapshot ../prod.snapshot -o html="$dir/review.html" -o text="$dir/review.txt")
cd test/browser
go run ./screenshots -height 1000 "$dir/review.html" "$images/review.png"
go run ./screenshots -height 1000 -top "#pools-0" -click ".after .node.rise" "$dir/review.html" "$images/review-nodes.png"

# The text as a terminal shows it: its first lines, as they are.
head -n 34 "$dir/review.txt" | awk '
	BEGIN { lines = "" }
	{
		gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;")
		lines = lines "<text x=\"16\" y=\"" (52 + NR * 18) "\" xml:space=\"preserve\">" $0 "</text>\n"
	}
	END {
		height = 84 + NR * 18
		print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"" height "\" viewBox=\"0 0 720 " height "\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#e6edf3\">"
		print "<rect width=\"720\" height=\"" height "\" rx=\"8\" fill=\"#0d1117\"/>"
		print "<text x=\"16\" y=\"34\" xml:space=\"preserve\" fill=\"#79b8ff\">$ kubectl sched review --base main --head change --snapshot prod.snapshot</text>"
		printf "%s", lines
		print "</svg>"
	}' > "$images/review-text.svg"
ls -l "$images"
