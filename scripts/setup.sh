#!/usr/bin/env bash
# Installs what building, testing and the demo need:
# scripts/setup.sh [build] [torch] [huggingface] [frameworks] [demo] [browser] [lint] [fuzz].
# Packages come from Debian (packages.txt), PyTorch, transformers and frameworks' parsers as pinned wheels
# (unpack_wheels.sh). Does nothing, and needs no network, when all is there. LAYLINE_SKIP_SETUP=1 leaves installing to you.
#
# scripts/setup.sh --print-torch-folder prints where libtorch is, --print-python where the Python is that imports it.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  --print-torch-folder) exec scripts/unpack_wheels.sh --print torch ;;
  --print-python)
    folder=$(scripts/unpack_wheels.sh --print huggingface)
    echo "$folder/bin/python"
    exit 0
    ;;
esac
[[ "${LAYLINE_SKIP_SETUP:-0}" == 1 ]] && exit 0

wanted=()
for group in "${@:-build}"; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v group="$group" '$1 == group {print $2}' scripts/packages.txt)
done
if ((${#wanted[@]} == 0)); then
  echo "setup: no packages for: $*; the groups are build, torch, huggingface, frameworks, demo, browser, lint and fuzz" >&2
  exit 2
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<EOF
setup: this machine has no apt. Layline is built and tested on Debian 12; elsewhere, install the counterparts of
  ${wanted[*]}
and set LAYLINE_SKIP_SETUP=1.
EOF
  exit 2
fi

# Two at once would meet in apt-get update, which does not wait.
exec {lock}>"${TMPDIR:-/tmp}/layline-setup-$UID.lock"
flock "$lock"
missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == *installed* && "$state" != *not-installed* ]] || missing+=("$package")
done

install_missing() {
  local as_root=() apt
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "setup: run this once as root, then again: apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; then
    echo "setup: apt-get could not install ${missing[*]}; these packages are those of Debian 12 with its updates" >&2
    exit 1
  fi
}
((${#missing[@]} == 0)) || install_missing
exec {lock}>&-

wheels=()
for group in "${@:-build}"; do
  [[ "$group" != torch && "$group" != huggingface && "$group" != frameworks ]] || wheels+=("$group")
done
((${#wheels[@]} == 0)) || scripts/unpack_wheels.sh "${wheels[@]}"
