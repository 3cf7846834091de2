#!/usr/bin/env bash
# Sees to it that there is a Chromium for test/browser: one that is there is taken, else
# it is installed where that can be done without asking. Without one the tests fail, and
# say so.
set -euo pipefail
[ -n "${CHROME_BIN:-}" ] && exit 0
for name in chromium chromium-browser chromium-headless-shell google-chrome-stable google-chrome; do
	command -v "$name" > /dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
	echo "installing chromium"
	apt-get update -qq || true # the lists that are there may do
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null || true
fi
command -v chromium > /dev/null || echo "there is no Chromium, and none could be installed; the tests of the page will fail" >&2
