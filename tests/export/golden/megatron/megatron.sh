#!/bin/bash
#SBATCH --job-name=layline
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
# Llama 3.1 70B, dp4 tp4 pp4 mb1 cp2 vp2 sp ckpt=selective, 128 x H100 80 GB SXM, 512 sequences of 8192 tokens a step, bf16
# Written by `layline export` for Megatron-LM core_v0.14.0.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
: "${MEGATRON_PATH:?the folder of Megatron-LM core_v0.14.0}"
export CUDA_DEVICE_MAX_CONNECTIONS=1
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

ARGS=(
  --tensor-model-parallel-size 4
  --pipeline-model-parallel-size 4
  --context-parallel-size 2
  --sequence-parallel
  --num-virtual-stages-per-pipeline-rank 2
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
  --recompute-granularity selective
  --transformer-impl transformer_engine
  --attention-backend flash
  --bf16
  --num-layers 80
  --hidden-size 8192
  --num-attention-heads 64
  --group-query-attention --num-query-groups 8
  --ffn-hidden-size 28672
  --swiglu
  --disable-bias-linear
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --max-position-embeddings 8192
  --position-embedding-type rope
  --rotary-base 500000
  --use-rope-scaling --rope-scaling-factor 8
  --untie-embeddings-and-output-weights
  --hidden-dropout 0 --attention-dropout 0
  --micro-batch-size 1
  --global-batch-size 512
  --seq-length 8192
  --train-iters 100
  --lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine
  --adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0
  --mock-data --tokenizer-type NullTokenizer --vocab-size 128255
  --eval-iters 0 --log-interval 1 --log-throughput
)

srun --kill-on-bad-exit=1 torchrun --nnodes 16 --nproc-per-node 8 \
  --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" \
  "$MEGATRON_PATH/pretrain_gpt.py" "${ARGS[@]}" "$@"
