#!/usr/bin/env bash
# Installs what building and testing need: scripts/setup.sh [build] [lint] [fuzz]. Does nothing, and needs no network,
# when all is there. LAYLINE_SKIP_SETUP=1 leaves installing to you.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_folder="${LAYLINE_TORCH_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/layline/torch-2.11.0}"
if [[ "${1:-}" == --print-torch-folder ]]; then
  echo "$torch_folder"
  exit 0
fi
[[ "${LAYLINE_SKIP_SETUP:-0}" == 1 ]] && exit 0

wanted=()
for group in "${@:-build}"; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v group="$group" '$1 == group {print $2}' scripts/packages.txt)
done
if ((${#wanted[@]} == 0)); then
  echo "setup: no packages for: $*; the groups are build, lint and fuzz" >&2
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

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == *installed* && "$state" != *not-installed* ]] || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

as_root=()
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
