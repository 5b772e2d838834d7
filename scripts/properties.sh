#!/usr/bin/env bash
# usage: scripts/properties.sh FOLDER NUM_SEEDS
# Tries every property that FOLDER's tests state on new random examples, NUM_SEEDS times. A failure prints the seed
# and the smallest example found; `RC_PARAMS=seed=N TEST --gtest_filter=NAME` finds it again.
set -euo pipefail
folder=$1
num_seeds=$2

source_root=$(cd "$(dirname "$0")/.." && pwd)
# Names of the properties in a folder of tests, as a filter of googletest.
filter_of() {
  grep -hoE 'RC_GTEST_(FIXTURE_)?PROP\([A-Za-z0-9]+, *[A-Za-z0-9]+' "$1"/*.cc |
    sed -E 's/.*\(([A-Za-z0-9]+), *([A-Za-z0-9]+)/\1.\2/' | paste -sd:
}

failed=0
for ((i = 0; i < num_seeds; ++i)); do
  seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
  echo "seed $seed"
  while read -r tests; do
    name=${tests#"$source_root"/tests/}
    program=$folder/${name//\//_}_test
    [[ -x $program ]] || continue
    if ! output=$(RC_PARAMS="seed=$seed max_success=500" "$program" --gtest_brief=1 --gtest_filter="$(filter_of "$tests")" 2>&1); then
      echo "$output"
      failed=1
    fi
  done < <(grep -rlE 'RC_GTEST_(FIXTURE_)?PROP' "$source_root/tests" --include='*.cc' | xargs -n1 dirname | sort -u)
done
exit $failed
