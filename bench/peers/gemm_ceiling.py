#!/usr/bin/env python3
"""What a step would take if it were its matrix multiplications only: the ceiling for any trainer on this machine.

  gemm_ceiling.py [--config tiny,small] [--dtypes bf16,fp32] [--threads 2] [--rounds 7] [--json]

Each linear layer, K inputs and N outputs over M tokens: forward X[M, K] W[N, K]^T, input gradient dY[M, N] W, weight
gradient dY^T X; with query, key, value and gate, up as separate products and as fused ones. Rounds are interleaved.
"""

import argparse
import json
import statistics
import time

import torch
from peer_llama import CONFIGS

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
PARTS = ("forward", "input gradient", "weight gradient")


def linears(config):
    """(name, K, N, number) of a model's linear layers, for separate and for fused products."""
    hidden, ffn, layers = config["hidden"], config["ffn"], config["layers"]
    head = ("head", hidden, config["vocabulary"], 1)
    down = ("down", ffn, hidden, layers)
    return {
        "separate": [("q, k, v, o", hidden, hidden, 4 * layers), ("gate, up", hidden, ffn, 2 * layers), down, head],
        "fused": [("qkv", hidden, 3 * hidden, layers), ("o", hidden, hidden, layers),
                  ("gate and up", hidden, 2 * ffn, layers), down, head],
    }  # fmt: skip


def measure(m, k, n, dtype, rounds):
    """(median, least) seconds of each of PARTS."""
    x, w, dy = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), torch.randn(m, n).to(dtype)
    y, dx, dw = torch.empty(m, n, dtype=dtype), torch.empty(m, k, dtype=dtype), torch.empty(n, k, dtype=dtype)
    products = [
        lambda: torch.mm(x, w.t(), out=y),
        lambda: torch.mm(dy, w, out=dx),
        lambda: torch.mm(dy.t(), x, out=dw),
    ]
    seconds = [[] for _ in products]
    for turn in range(rounds + 2):
        for product, times in zip(products, seconds):
            start = time.perf_counter()
            product()
            if turn >= 2:
                times.append(time.perf_counter() - start)
    return [(statistics.median(times), min(times)) for times in seconds]


def ceiling(name, dtype, kind, arguments, measured):
    config = CONFIGS[name]
    m = config["batch"] * config["sequence"]
    median = least = flops = 0.0
    for layer, k, n, number in linears(config)[kind]:
        if (k, n) not in measured:
            measured[k, n] = measure(m, k, n, DTYPES[dtype], arguments.rounds)
        parts = measured[k, n]
        if not arguments.json:
            rates = ", ".join(f"{part} {2 * m * n * k / t / 1e9:.0f}" for part, (t, _) in zip(PARTS, parts))
            print(f"{name} {dtype} {layer}: {number} of {m} x {k} x {n}: {rates} GFLOP/s", flush=True)
        median += number * sum(t for t, _ in parts)
        least += number * sum(t for _, t in parts)
        flops += number * 6 * m * n * k
    return dict(
        config=name, dtype=dtype, products=kind, threads=arguments.threads, gemm_seconds=median,
        min_gemm_seconds=least, flops=flops, flops_per_second=flops / median,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="tiny,small")
    parser.add_argument("--dtypes", default="bf16,fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    for name in arguments.config.split(","):
        for dtype in arguments.dtypes.split(","):
            measured = {}
            for kind in ("separate", "fused"):
                row = ceiling(name, dtype, kind, arguments, measured)
                if arguments.json:
                    print(json.dumps(row), flush=True)
                else:
                    print(
                        f"  a step's products, {kind}: {row['gemm_seconds'] * 1e3:.1f} ms "
                        f"(least {row['min_gemm_seconds'] * 1e3:.1f}), {row['flops_per_second'] / 1e9:.0f} GFLOP/s"
                    )


if __name__ == "__main__":
    main()
