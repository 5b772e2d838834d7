#!/usr/bin/env bash
# Writes the table of coefficients in docs/model.md from layline/spec/coefficients.inc. With --check it only says whether
# the table is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

table() {
  echo '| coefficient | default | bounds | unit | learned from | meaning |'
  echo '|---|---|---|---|---|---|'
  sed -nE 's/^LAYLINE_COEFFICIENT\(([^,]+), ([^,]+), ([^,]+), ([^,]+), k(Time|Memory), [^,]+, "([^"]*)", "([^"]*)"\)$/| `\1` | \2 | \3 to \4 | \6 | \L\5\E | \7 |/p' \
    layline/spec/coefficients.inc
}

updated() {
  awk '
    /^<!-- \/coefficients -->$/ {inside = 0}
    !inside {print}
    /^<!-- coefficients -->$/ {inside = 1; print ENVIRON["rows"]}' docs/model.md
}

rows=$(table)
export rows
if [[ "${1:-}" == --check ]]; then
  updated | cmp --silent - docs/model.md || { echo "docs/model.md: run scripts/coefficient_table.sh" >&2; exit 1; }
else
  updated >docs/model.md.new
  mv docs/model.md.new docs/model.md
fi
