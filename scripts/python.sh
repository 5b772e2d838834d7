#!/usr/bin/env bash
# Runs the Python that has torch and transformers, as python3 would: scripts/python.sh FILE.py ARGUMENT…
set -euo pipefail
python=$("$(dirname "$0")/setup.sh" --print-python)
[[ -x "$python" ]] || { echo "no Python in ${python%/bin/python}: run scripts/setup.sh huggingface" >&2; exit 1; }
exec "$python" "$@"
