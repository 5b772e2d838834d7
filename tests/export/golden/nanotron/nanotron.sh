#!/bin/bash
#SBATCH --job-name=layline
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
# Llama 3 8B, dp8 tp4 pp1 mb2 sp ckpt=full, 32 x H100 80 GB SXM, 256 sequences of 4096 tokens a step, bf16
# Written by `layline export` for nanotron 2411b02 (April 2026).
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
: "${NANOTRON_PATH:?the folder of nanotron 2411b02 (April 2026)}"
export CUDA_DEVICE_MAX_CONNECTIONS=1
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

srun --kill-on-bad-exit=1 torchrun --nnodes 4 --nproc-per-node 8 \
  --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" \
  "$NANOTRON_PATH/run_train.py" --config-file nanotron.yaml
