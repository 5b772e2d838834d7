#!/bin/bash
# Llama 13B, vocabulary 128k, dp8 tp2 pp4 mb2 ckpt=full attn=fused-softmax, 64 x A100 80 GB SXM, 512 sequences of 2048 tokens a step, bf16
# Written by `layline export` for Megatron-DeepSpeed 4efb479 with DeepSpeed 0.17.6.
set -euo pipefail
cd "$(dirname "$0")"
: "${MEGATRON_DEEPSPEED_PATH:?the folder of Megatron-DeepSpeed 4efb479 with DeepSpeed 0.17.6}"
export CUDA_DEVICE_MAX_CONNECTIONS=1
# Start this on each of the 8 nodes, with MASTER_ADDR set to one of them.
: "${MASTER_ADDR:?the name of one of the nodes, the same on all}"
MASTER_PORT=${MASTER_PORT:-29500}

ARGS=(
  --deepspeed --deepspeed_config deepspeed.json
  --zero-stage 1
  --tensor-model-parallel-size 2
  --pipeline-model-parallel-size 4
  --deepspeed-activation-checkpointing --checkpoint-activations --checkpoint-num-layers 1
  --bf16
  --num-layers 40
  --hidden-size 5120
  --num-attention-heads 40
  --ffn-hidden-size 13824
  --swiglu
  --disable-bias-linear
  --normalization rmsnorm
  --layernorm-epsilon 1e-05
  --max-position-embeddings 2048
  --use-rotary-position-embeddings
  --untie-embeddings-and-output-weights
  --hidden-dropout 0 --attention-dropout 0
  --micro-batch-size 2
  --global-batch-size 512
  --seq-length 2048
  --train-iters 100
  --lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine
  --adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0
  --data-path "$DATA_PATH" --tokenizer-type NullTokenizer
  --vocab-size 127999 --eval-iters 0 --log-interval 1
)

torchrun --nnodes 8 --nproc-per-node 8 \
  --rdzv-id layline --rdzv-backend c10d --rdzv-endpoint "$MASTER_ADDR:$MASTER_PORT" \
  "$MEGATRON_DEEPSPEED_PATH/pretrain_gpt.py" "${ARGS[@]}" "$@"
