#!/usr/bin/env bash
# Fits the shipped calibrations (specs/calibrations/) anew to the published runs. Needed after a change of the cost or
# memory model; takes about three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
layline=${LAYLINE:-build/layline}
data=data/published
out=specs/calibrations
fit() { "$layline" calibrate "${@:2}" --output "$out/$1.json" | head -3; }
fit aleph-scaling-a100 "$data/hagemann2024_a100.csv" --engine aleph-scaling
fit nanotron-h100 "$data/nanotron_h100.csv" --engine nanotron --leave-out model
fit llm-foundry-a100 "$data/llm_foundry_a100.csv" --engine llm-foundry --leave-out model
fit megatron-deepspeed-a100 "$data/bigscience_a100.csv" --engine megatron-deepspeed --gpu a100-80gb --leave-out model
fit megatron-deepspeed-v100 "$data/bigscience_a100.csv" --engine megatron-deepspeed --gpu v100-32gb --leave-out model
# The continuous-integration runs are bound by kernel launches of toy models: they say nothing about step times.
fit megatron-core-h100 "$data/nemo_h100.csv" "$data/megatron_papers.csv" --engine megatron-core --gpu h100-80gb --leave-out model
fit megatron-2021-a100 "$data/megatron_vtrain_a100.csv" "$data/megatron_papers.csv" --engine megatron-2021 --leave-out model
