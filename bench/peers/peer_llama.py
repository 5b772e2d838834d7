#!/usr/bin/env python3
"""The training step to beat: a Llama's forward pass, loss, backward pass, clipping and AdamW in PyTorch on a CPU.

  peer_llama.py --peer plain,hf,plain-compile,hf-compile --config small [--prec master] [--steps 10] [--profile]
                [--json]

Peers: plain is a Llama written by hand as one would in PyTorch, hf is Hugging Face's; -compile puts torch.compile
around it. Several peers take turns step by step, so that the machine's moods meet all alike; peak memory is then not
told.

Precisions: master   bf16 weights and gradients, fp32 master weights and moments (what layline-train does)
            bf16     everything bf16, the moments too
            autocast fp32 weights under torch.autocast
            fp32     everything fp32
"""

import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

CONFIGS = {
    "tiny": dict(layers=4, hidden=256, heads=4, ffn=688, vocabulary=256, sequence=512, batch=4, tied=False),
    "tiny32k": dict(layers=4, hidden=256, heads=4, ffn=688, vocabulary=32000, sequence=512, batch=4, tied=False),
    "small": dict(layers=12, hidden=768, heads=12, ffn=2048, vocabulary=32000, sequence=1024, batch=2, tied=True),
    "small256": dict(layers=12, hidden=768, heads=12, ffn=2048, vocabulary=256, sequence=1024, batch=2, tied=False),
}
PRECISIONS = ["master", "bf16", "autocast", "fp32"]
NORM_EPSILON = 1e-5


class RMSNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPSILON)
        return self.weight * x.to(dtype)


def rope_tables(sequence, head_size, base=10000.0):
    frequencies = 1.0 / base ** (torch.arange(0, head_size, 2).float() / head_size)
    angles = torch.outer(torch.arange(sequence).float(), frequencies)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, ffn = config["hidden"], config["ffn"]
        self.heads, self.head_size = config["heads"], hidden // config["heads"]
        self.attention_norm, self.ffn_norm = RMSNorm(hidden), RMSNorm(hidden)
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, sequence, hidden = x.shape
        y = self.attention_norm(x)
        q, k, v = (
            project(y).view(batch, sequence, self.heads, self.head_size).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        a = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(batch, sequence, hidden))
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class PlainLlama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config["vocabulary"], config["hidden"])
        self.blocks = nn.ModuleList(Block(config) for _ in range(config["layers"]))
        self.norm = RMSNorm(config["hidden"])
        self.head = nn.Linear(config["hidden"], config["vocabulary"], bias=False)
        if config["tied"]:
            self.head.weight = self.embedding.weight
        cos, sin = rope_tables(config["sequence"], config["hidden"] // config["heads"])
        self.register_buffer("cos", cos, False)
        self.register_buffer("sin", sin, False)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.size(-1)), targets.view(-1))


class HuggingFaceLlama(nn.Module):
    def __init__(self, config):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=config["hidden"], intermediate_size=config["ffn"], num_hidden_layers=config["layers"],
                num_attention_heads=config["heads"], num_key_value_heads=config["heads"],
                vocab_size=config["vocabulary"], max_position_embeddings=config["sequence"],
                rms_norm_eps=NORM_EPSILON, tie_word_embeddings=config["tied"], use_cache=False,
                attn_implementation="sdpa", bos_token_id=1, eos_token_id=2, pad_token_id=None,
            )
        )

    def forward(self, tokens, targets):
        return self.model(input_ids=tokens, labels=targets, shift_labels=targets, use_cache=False).loss


class Trainer:
    """One peer. step() trains once on the same random batch and returns the loss."""

    def __init__(self, peer, config, precision):
        torch.manual_seed(0)
        self.peer, self.config, self.precision = peer, config, precision
        model = (HuggingFaceLlama if peer.startswith("hf") else PlainLlama)(config).train()
        if precision in ("bf16", "master"):
            model.to(torch.bfloat16)
        self.weights = list(model.parameters())
        self.master = None
        if precision == "master":
            self.master = [weight.detach().float().clone().requires_grad_() for weight in self.weights]
        self.optimizer = torch.optim.AdamW(
            self.master or self.weights, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True
        )
        self.forward = torch.compile(model) if peer.endswith("compile") else model
        generator = torch.Generator().manual_seed(1)
        data = torch.randint(config["vocabulary"], (config["batch"], config["sequence"] + 1), generator=generator)
        self.tokens, self.targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()

    def step(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "autocast"):
            loss = self.forward(self.tokens, self.targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        if self.master:
            self._update_master()
        else:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _update_master(self):
        for weight, master in zip(self.weights, self.master):
            master.grad = weight.grad.float()
        self.optimizer.step()
        torch._foreach_copy_([weight.data for weight in self.weights], [master.data for master in self.master])
        for tensor in (*self.master, *self.weights):
            tensor.grad = None

    def num_parameters(self):
        return sum(weight.numel() for weight in self.weights)


KINDS = {
    "gemm": ("aten::mm", "aten::addmm", "aten::bmm", "aten::matmul", "aten::linear", "mkldnn", "onednn",
             "_linear_pointwise", "mkl_linear"),
    "attention": ("scaled_dot_product", "flash_attention"),
    "optimizer": ("fused_adamw", "optimizer"),
    "clip": ("foreach_norm", "linalg_vector_norm", "_foreach_mul"),
    "other": ("",),
}  # fmt: skip


def shares_of(trainer, steps=2):
    """Part of the time that each kind of operator takes."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            trainer.step()
    seconds = dict.fromkeys(KINDS, 0.0)
    for event in profiler.key_averages():
        kind = next(kind for kind, names in KINDS.items() if any(name in event.key.lower() for name in names))
        seconds[kind] += event.self_cpu_time_total
    total = sum(seconds.values())
    return {kind: round(value / total, 3) for kind, value in seconds.items()}


def take_turns(trainers, steps, warmup):
    """Seconds of each trainer's steps after the first `warmup`, and its last loss."""
    seconds = {trainer: [] for trainer in trainers}
    losses = {}
    for _ in range(warmup + steps):
        for trainer in trainers:
            start = time.perf_counter()
            losses[trainer] = trainer.step()
            seconds[trainer].append(time.perf_counter() - start)
    return {trainer: values[warmup:] for trainer, values in seconds.items()}, losses


def report(trainer, seconds, loss, arguments):
    config = trainer.config
    median = statistics.median(seconds)
    tokens = config["batch"] * config["sequence"]
    flops = (6 * trainer.num_parameters() + 12 * config["layers"] * config["hidden"] * config["sequence"]) * tokens
    row = dict(
        peer=trainer.peer, config=arguments.config, precision=arguments.prec, threads=arguments.threads,
        median_step_seconds=median, min_step_seconds=min(seconds), max_step_seconds=max(seconds),
        tokens_per_second=tokens / median, flops_per_second=flops / median, num_parameters=trainer.num_parameters(),
        loss=loss,
    )  # fmt: skip
    if len(arguments.peer.split(",")) == 1:
        row["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if arguments.profile:
        row["shares"] = shares_of(trainer)
    return row


def text_of(row):
    text = (
        f"{row['peer']:14s} {row['config']} {row['precision']}, {row['threads']} threads: "
        f"{row['median_step_seconds'] * 1e3:.1f} ms (least {row['min_step_seconds'] * 1e3:.1f}), "
        f"{row['tokens_per_second']:.0f} tok/s, {row['flops_per_second'] / 1e9:.0f} GFLOP/s, loss {row['loss']:.4f}"
    )
    if "peak_memory_bytes" in row:
        text += f", {row['peak_memory_bytes'] / 2**20:.0f} MiB"
    return text + (f"\n  {row['shares']}" if "shares" in row else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="plain")
    parser.add_argument("--config", default="tiny", choices=CONFIGS)
    parser.add_argument("--prec", default="master", choices=PRECISIONS)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    trainers = [Trainer(peer, CONFIGS[arguments.config], arguments.prec) for peer in arguments.peer.split(",")]
    seconds, losses = take_turns(trainers, arguments.steps, arguments.warmup)
    for trainer in trainers:
        row = report(trainer, seconds[trainer], losses[trainer], arguments)
        print(json.dumps(row) if arguments.json else text_of(row), flush=True)


if __name__ == "__main__":
    main()
