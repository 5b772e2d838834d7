#!/bin/bash
#SBATCH --job-name=layline
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
# Llama 3.1 8B, dp16 tp2 pp2 mb2 sp zero2 ckpt=full, 64 x H100 80 GB SXM, 256 sequences of 8192 tokens a step, bf16
# Written by `layline export` for torchtitan 0.2.0.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
export PYTHONPATH="$PWD:${PYTHONPATH:-}"
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

srun --kill-on-bad-exit=1 torchrun --nnodes 8 --nproc-per-node 8 \
  --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" \
  -m torchtitan.train --job.config_file torchtitan.toml "$@"
