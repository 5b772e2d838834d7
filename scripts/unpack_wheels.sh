#!/usr/bin/env bash
# Unpacks pinned Python wheels where builds and tests look for them: scripts/unpack_wheels.sh [torch] [huggingface] [frameworks].
#   torch        the libtorch that the trainer is linked with
#   huggingface  a Python that imports that same PyTorch, and transformers, on a CPU: the reference of tests and benchmarks
#   frameworks   other frameworks' packages, for that Python: tests read exported files with their parsers
# Does nothing, and needs no network, when they are there. A folder is made beside its place and renamed into it when it
# is complete; its file .layline-complete then holds the hash of what it was made from.
#
# scripts/unpack_wheels.sh --print torch|huggingface|frameworks prints the folder. LAYLINE_TORCH_DIR, LAYLINE_PYTHON_DIR and
# LAYLINE_FRAMEWORKS_DIR choose other ones, LAYLINE_PYTHON the interpreter (/usr/bin/python3), a CPython 3.11 with pip.
set -euo pipefail
cd "$(dirname "$0")"

torch_version=2.11.0

fail() {
  echo "setup: $*" >&2
  exit 1
}

# variable_of torch|huggingface|frameworks: that which chooses its folder.
variable_of() {
  case "$1" in
    torch) echo LAYLINE_TORCH_DIR ;;
    huggingface) echo LAYLINE_PYTHON_DIR ;;
    frameworks) echo LAYLINE_FRAMEWORKS_DIR ;;
    *) fail "no wheels called $1; there are torch, huggingface and frameworks" ;;
  esac
}

# folder_of torch|huggingface|frameworks
folder_of() {
  local variable name
  variable=$(variable_of "$1") || exit 1
  case "$1" in
    torch) name=torch-$torch_version ;;
    huggingface) name=python-$torch_version ;;
    frameworks) name=frameworks ;;
  esac
  if [[ -n "${!variable:-}" ]]; then
    echo "${!variable%/}"
    return
  fi
  local cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
  [[ -n "$cache" ]] || fail "HOME is not set: set $variable to a folder for what is unpacked"
  echo "$cache/layline/$name"
}

python=${LAYLINE_PYTHON:-/usr/bin/python3}
check_python() {
  local platform version
  platform="$(uname -s) $(uname -m)"
  [[ "$platform" == "Linux x86_64" ]] ||
    fail "the pinned wheels are for Linux on x86-64, this is $platform. Set LAYLINE_TORCH_DIR to a folder with torch" \
         "$torch_version for it, or build the planner alone: make planner"
  command -v "$python" >/dev/null || fail "no $python: set LAYLINE_PYTHON to a CPython 3.11 with pip"
  version=$("$python" -c 'import sys; print("%s %d.%d" % (sys.implementation.name, *sys.version_info[:2]))')
  [[ "$version" == "cpython 3.11" ]] ||
    fail "$python is $version, the pinned wheels are for CPython 3.11: set LAYLINE_PYTHON to one, or LAYLINE_TORCH_DIR" \
         "to a folder with torch $torch_version, or build the planner alone: make planner"
  "$python" -m pip --version >/dev/null 2>&1 || fail "$python has no pip: install it, or set LAYLINE_PYTHON"
}

# pip_install REQUIREMENTS ARGUMENT…
pip_install() {
  "$python" -m pip --quiet --no-input --disable-pip-version-check "${@:2}" --no-deps --only-binary=:all: \
    --require-hashes --no-compile --no-cache-dir --root-user-action=ignore -r "$1"
}

fill_torch() {
  echo "setup: downloading PyTorch $torch_version (about 550 MB, 1.2 GB unpacked) into $(folder_of torch)"
  TMPDIR="$1.tmp" pip_install torch-requirements.txt install --target "$1"
}

# PyTorch's CUDA half is linked with libraries that nothing calls on a CPU. Rather than two gigabytes of them, empty
# libraries of their names, loaded before torch; what is called in them, nothing, would be looked up when it is called.
stand_ins=(libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 libcurand.so.10
  libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3)

fill_huggingface() {
  echo "setup: downloading transformers and what it needs (about 45 MB, 200 MB unpacked) into $(folder_of huggingface)"
  "$python" -m venv --without-pip "$1"
  # They name the folder of now, not that of later.
  rm -f "$1"/bin/[aA]ctivate*
  TMPDIR="$1.tmp" pip_install python-requirements.txt --python "$1/bin/python" install --no-warn-script-location
  local site=$1/lib/python3.11/site-packages name
  mkdir "$site/layline_no_cuda"
  for name in "${stand_ins[@]}"; do
    "${CC:-gcc}" -shared -x c /dev/null -o "$site/layline_no_cuda/$name" -Wl,-soname,"$name"
  done
  cp layline_no_cuda.py "$site/layline_no_cuda/__init__.py"
  printf '%s\nimport layline_no_cuda\n' "$(folder_of torch)" >"$site/layline.pth"
  LD_LIBRARY_PATH="" "$1/bin/python" -c 'import torch, transformers'
}

fill_frameworks() {
  echo "setup: downloading other frameworks' parsers (about 3 MB, 15 MB unpacked) into $(folder_of frameworks)"
  TMPDIR="$1.tmp" pip_install frameworks-requirements.txt install --target "$1"
}

# hash_of torch|huggingface|frameworks: of all that its folder is made from.
hash_of() {
  case "$1" in
    torch) sha256sum <torch-requirements.txt ;;
    huggingface) { cat torch-requirements.txt python-requirements.txt layline_no_cuda.py && folder_of torch; } | sha256sum ;;
    frameworks) sha256sum <frameworks-requirements.txt ;;
  esac
}

is_complete() {
  [[ "$(cat "$1/.layline-complete" 2>/dev/null)" == "$2" ]]
}

# A folder that the user chose and that was not made here is theirs, and never touched. It must be the right torch.
is_users_own() {
  local variable
  variable=$(variable_of "$1")
  [[ -n "${!variable:-}" && -n "$(ls -A "$2" 2>/dev/null)" && ! -e "$2/.layline-complete" ]] || return 1
  if [[ "$1" == torch ]]; then
    grep -qE "^__version__ = '${torch_version//./\\.}\b" "$2/torch/version.py" 2>/dev/null ||
      fail "$variable=$2 does not hold torch $torch_version; what is not there yet, or empty, is filled"
  else
    fail "$variable=$2 holds something else; what is not there yet, or empty, is filled"
  fi
}

replace() {
  local folder=$1 fill=$2 hash=$3 partial=$1.partial
  # What one left that was killed: nobody else is here.
  rm -rf "$partial" "$partial.tmp" "$folder.old"
  trap 'rm -rf "'"$partial"'" "'"$partial.tmp"'"; echo "setup: nothing is left half-made in '"$folder"'; try again" >&2' EXIT
  mkdir "$partial" "$partial.tmp"
  "$fill" "$partial"
  echo "$hash" >"$partial/.layline-complete"
  [[ ! -e "$folder" ]] || mv "$folder" "$folder.old"
  mv "$partial" "$folder"
  trap - EXIT
  rm -rf "$partial.tmp" "$folder.old"
}

unpack() {
  local folder hash lock
  folder=$(folder_of "$1")
  hash=$(hash_of "$1")
  if is_complete "$folder" "$hash" || is_users_own "$1" "$folder"; then return; fi
  check_python
  { mkdir -p "$(dirname "$folder")" && exec {lock}>"$folder.lock"; } 2>/dev/null ||
    fail "cannot write to $(dirname "$folder"): set $(variable_of "$1") to a folder elsewhere"
  if ! flock --nonblock "$lock"; then
    echo "setup: waiting for another set-up of $folder"
    flock "$lock"
  fi
  is_complete "$folder" "$hash" || replace "$folder" "fill_$1" "$hash"
  exec {lock}>&-
}

if [[ "${1:-}" == --print ]]; then
  folder_of "${2:-torch}"
  exit 0
fi
for wheels in "${@:-torch}"; do
  [[ "$wheels" == torch ]] || unpack torch
  [[ "$wheels" != frameworks ]] || unpack huggingface
  unpack "$wheels"
done
