#!/usr/bin/env bash
# Checks the C++ files that changed: clang-format, then clang-tidy for as long as LINT_SECONDS (270) allows.
# scripts/lint.sh [FILE…]; without files, those that differ from the merge base with origin/main, or from the previous
# commit where that is the same.
set -euo pipefail
cd "$(dirname "$0")/.."

is_cpp='\.(h|cc)$'
changed_files() {
  local head base
  head=$(git rev-parse HEAD)
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  [[ -n "$base" && "$base" != "$head" ]] || base=$(git rev-parse --verify --quiet HEAD~1 || true)
  if [[ -z "$base" ]]; then
    echo "lint: no earlier commit to compare with, so nothing counts as changed" >&2
    return
  fi
  { git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sort -u
}

if (($# > 0)); then
  mapfile -t files < <(printf '%s\n' "$@" | grep -E "$is_cpp" || true)
else
  mapfile -t files < <(changed_files | grep -E "$is_cpp" | grep -v '^third_party/' || true)
fi
if ((${#files[@]} == 0)); then
  echo "lint: no C++ file changed"
  exit 0
fi

echo "lint: clang-format of ${#files[@]} files"
clang-format-19 --dry-run --Werror "${files[@]}" || { echo "lint: \`make format\` mends this" >&2; exit 1; }

# Headers are checked through the sources that include them; sources that the build does not know cannot be.
mapfile -t sources < <(for file in "${files[@]}"; do
  [[ "$file" == *.cc ]] && grep -qF "\"$PWD/$file\"" build/compile_commands.json && echo "$file"
done || true)
((${#sources[@]} == 0)) && exit 0

echo "lint: clang-tidy of ${#sources[@]} sources"
export DEADLINE=$(($(date +%s) + ${LINT_SECONDS:-270}))
tidy_one() {
  local left=$((DEADLINE - $(date +%s)))
  local status=0
  if ((left > 0)); then
    timeout "$left" clang-tidy-19 -p build --quiet --extra-arg=-Wno-unknown-warning-option \
      --extra-arg=-Wno-deprecated-declarations --extra-arg=-Wno-ignored-gch "$1" 2>/dev/null || status=$?
  fi
  if ((left <= 0 || status == 124)); then
    echo "lint: no time left for $1"
    return 0
  fi
  return "$status"
}
export -f tidy_one
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$0"'
