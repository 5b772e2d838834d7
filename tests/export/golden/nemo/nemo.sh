#!/bin/bash
# Llama 3.1 8B, dp4 tp2 pp2 mb1 sp split=17,15, 16 x H100 80 GB SXM, 128 sequences of 8192 tokens a step, bf16
# Written by `layline export` for NeMo 2.4.0.
set -euo pipefail
cd "$(dirname "$0")"
export CUDA_DEVICE_MAX_CONNECTIONS=1
# Start this on each of the 2 nodes, with MASTER_ADDR set to one of them.
: "${MASTER_ADDR:?the name of one of the nodes, the same on all}"
MASTER_PORT=${MASTER_PORT:-29500}

torchrun --nnodes 2 --nproc-per-node 8 \
  --rdzv-id layline --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" \
  nemo_train.py nemo.yaml
