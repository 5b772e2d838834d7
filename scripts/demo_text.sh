#!/usr/bin/env bash
# Writes a real text to train on, 4 MB in the public domain: scripts/demo_text.sh OUTPUT. It is the King James Bible of
# Debian's bible-kjv-text (scripts/setup.sh demo), a verse a line, without the references before them.
set -euo pipefail

command -v bible >/dev/null || { echo "demo: no \`bible\`: run scripts/setup.sh demo" >&2; exit 2; }
mkdir -p "$(dirname "$1")"
bible -f gen1:1-rev22:21 </dev/null | sed 's/^[^ ]* //' >"$1.partial"
mv "$1.partial" "$1"
