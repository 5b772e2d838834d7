#!/usr/bin/env python3
"""What everything but the matrix multiplications of a step takes in PyTorch, forward and backward in bf16, each
operator alone, against the time that its bytes take at the bandwidth of a copy.

  pieces.py [--config small] [--threads 2] [--rounds 9] [--json]
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from peer_llama import CONFIGS, NORM_EPSILON, PlainLlama, RMSNorm, rope, rope_tables

BF16 = torch.bfloat16


def median_seconds(function, rounds):
    times = []
    for turn in range(rounds + 2):
        start = time.perf_counter()
        function()
        if turn >= 2:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_bytes_per_second():
    """Read and written, of blocks that no cache holds."""
    source = torch.ones(2**27)
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / median_seconds(lambda: target.copy_(source), 9)


def leaf(*shape):
    return torch.randn(*shape).to(BF16).requires_grad_()


def forward_and_backward(forward, inputs):
    gradient = torch.randn_like(forward())

    def run():
        for tensor in inputs:
            tensor.grad = None
        forward().backward(gradient)

    return run


def memory_bound(config):
    """(name, times a step, function, bytes that must move)."""
    b, s, h, f = config["batch"], config["sequence"], config["hidden"], config["ffn"]
    heads, layers = config["heads"], config["layers"]
    m, d = b * s, h // heads
    x, y, gate, up = leaf(b, s, h), leaf(b, s, h), leaf(b, s, f), leaf(b, s, f)
    norm = RMSNorm(h).to(BF16)
    cos, sin = (table.to(BF16) for table in rope_tables(s, d))
    q, k, v = (leaf(b, s, heads, d).detach().transpose(1, 2).requires_grad_() for _ in range(3))
    norm_bytes = 5 * 2 * m * h
    return [
        ("RMSNorm by hand, fp32 inside", 2 * layers + 1, forward_and_backward(lambda: norm(x), [x]), norm_bytes),
        ("rms_norm", 2 * layers + 1,
         forward_and_backward(lambda: F.rms_norm(x, (h,), norm.weight, NORM_EPSILON), [x]), norm_bytes),
        ("SwiGLU", layers, forward_and_backward(lambda: F.silu(gate) * up, [gate, up]), 8 * 2 * m * f),
        ("rotary embedding of q and k", layers,
         forward_and_backward(lambda: torch.cat((rope(q, cos, sin), rope(k, cos, sin))), [q, k]), 8 * 2 * m * h),
        ("flash attention, causal", layers,
         forward_and_backward(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), [q, k, v]),
         12 * 2 * m * h),
        ("residual addition", 2 * layers, forward_and_backward(lambda: x + y, [x, y]), 3 * 2 * m * h),
    ]  # fmt: skip


def ends(config):
    m, v, h = config["batch"] * config["sequence"], config["vocabulary"], config["hidden"]
    logits, targets = leaf(m, v), torch.randint(v, (m,))
    table, tokens = leaf(v, h), torch.randint(v, (m,))
    return [
        ("cross-entropy in fp32", 1,
         forward_and_backward(lambda: F.cross_entropy(logits.float(), targets), [logits]), 4 * 2 * m * v),
        ("embedding", 1, forward_and_backward(lambda: F.embedding(tokens, table), [table]), 2 * v * h + 8 * m * h),
    ]  # fmt: skip


def optimizer(config):
    weights = [weight.detach() for weight in PlainLlama(config).parameters()]
    total = sum(weight.numel() for weight in weights)
    master = [weight.clone().requires_grad_() for weight in weights]
    low = [weight.to(BF16) for weight in weights]
    gradients = [torch.randn_like(weight) for weight in low]
    adamw = torch.optim.AdamW(master, fused=True)

    def update():
        for weight, gradient in zip(master, gradients):
            weight.grad = gradient.float()
        adamw.step()
        torch._foreach_copy_(low, [weight.data for weight in master])

    for weight, gradient in zip(low, gradients):
        weight.grad = gradient
    return [
        ("AdamW of fp32 master weights, with casts", 1, update, 28 * total),
        ("gradient norm and clipping", 1, lambda: torch.nn.utils.clip_grad_norm_(low, 1.0), 2 * total),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="small", choices=CONFIGS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    bandwidth = copy_bytes_per_second()
    if not arguments.json:
        print(f"copy {bandwidth / 1e9:.1f} GB/s, read and written, {arguments.threads} threads")
    config = CONFIGS[arguments.config]
    for pieces in (memory_bound, ends, optimizer):
        for name, number, function, num_bytes in pieces(config):
            seconds = median_seconds(function, arguments.rounds)
            row = dict(
                piece=name, times_a_step=number, seconds=seconds, floor_seconds=num_bytes / bandwidth,
                seconds_a_step=number * seconds,
            )  # fmt: skip
            if arguments.json:
                print(json.dumps(row), flush=True)
            else:
                print(
                    f"{name:42s} {number:3d} x {seconds * 1e3:8.2f} ms, {seconds * bandwidth / num_bytes:5.1f} x its "
                    f"bytes' floor, {number * seconds * 1e3:8.1f} ms a step",
                    flush=True,
                )


if __name__ == "__main__":
    main()
