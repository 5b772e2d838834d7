#!/usr/bin/env bash
# Runs every fuzzer of build-fuzz/ for FUZZ_SECONDS (60), two at a time. A crash leaves its input in build-fuzz/.
set -euo pipefail
cd "$(dirname "$0")/.."

export FUZZ_SECONDS=${FUZZ_SECONDS:-60}
fuzz_one() {
  local name=$1 log="build-fuzz/fuzz_$1.log"
  mkdir -p "build-fuzz/corpus/$name"
  if build-fuzz/fuzz_"$name" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/fuzz_$name-" "build-fuzz/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1; then
    echo "fuzz_$name: $(awk '/number_of_executed_units/ {print $2}' "$log") inputs in $FUZZ_SECONDS s, no failure"
  else
    tail -n 60 "$log"
    echo "fuzz_$name: failed; the whole log is $log"
    return 1
  fi
}
export -f fuzz_one

mapfile -t names < <(find fuzz -maxdepth 1 -name 'fuzz_*.cc' -exec basename {} .cc \; | sed 's/^fuzz_//' | sort)
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P 2 bash -c 'fuzz_one "$0"'
