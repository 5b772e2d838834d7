#!/bin/bash
# Llama tiny (13M), dp1 tp2 pp2 mb4 sp, 4 x CPU core with AVX-512 bf16, 32 sequences of 256 tokens a step, bf16
# Written by `layline export` for Layline 0.1.0.
set -euo pipefail
cd "$(dirname "$0")"

torchrun --no-python --standalone --nnodes 1 --nproc-per-node 4 \
  layline-train run.json
