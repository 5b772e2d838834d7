#!/usr/bin/env python3
"""Random tiny Llamas, and what Hugging Face's own code computes with them: make_reference.py FOLDER

Writes FOLDER/MODEL/ for each row of MODELS, with

  config.json              as Hugging Face writes it; with the keys of transformers 4 (rope_theta, rope_scaling,
                           torch_dtype) where the row says so
  model.safetensors        weights, in the row's dtype (F32 or F64); or model-0000K-of-0000N.safetensors with
                           model.safetensors.index.json. A tied head is not in it. One-dimensional weights are not ones.
  reference.safetensors    floats in the row's dtype:
    tokens                 I64 [B, S + 1]: sample b reads tokens[b, :S] and predicts tokens[b, 1:]
    loss_mask              U8  [B, S]: 1 where the target counts; one sample counts nowhere
    logits                 [B, S, V]
    loss                   []: mean over the targets that count
    grad_norm              []: 2-norm of all gradients, a tied weight once
    grad.NAME              gradient of the weight NAME of model.safetensors
  and, in the rows with trained steps, K of them from the same weights, each on a batch of its own:
    trained.tokens         I64 [K, B, S + 1]
    trained.loss_mask      U8  [K, B, S]
    trained.loss           [K]: before the step's update
    trained.grad_norm      [K]: before clipping
    trained.weight.NAME    after K steps

Steps are torch.optim.AdamW (ADAMW below; no decay of one-dimensional weights) after clip_grad_norm_ to CLIP, which
scales by CLIP / (norm + 1e-6) where that is below 1.

fp64 is fp64 throughout: where Hugging Face's code casts to fp32 (norms, rotary embedding, softmax), it casts to fp64.

FOLDER/made_from holds the hash of this file and the versions; where it fits, nothing is done.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import zlib
from dataclasses import dataclass

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
import safetensors.torch
import torch
import transformers

BATCH, SEQUENCE = 3, 24
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8}
WEIGHT_DECAY = 0.1
CLIP = 1.0
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}


@dataclass(frozen=True)
class Model:
    name: str
    dtype: str = "float64"
    layers: int = 2
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 4
    head_size: int = 8
    ffn: int = 56
    vocabulary: int = 97
    tied: bool = False
    rope_theta: float = 10000.0
    rope_scaling: dict = None
    norm_epsilon: float = 1e-5
    sharded: bool = False
    transformers4: bool = False  # keys of config.json
    trained_steps: int = 0


MODELS = [
    Model("mha"),
    Model("mha_fp32", dtype="float32"),
    Model("gqa_4_2", kv_heads=2, trained_steps=5),
    Model("gqa_4_2_fp32", kv_heads=2, dtype="float32", vocabulary=127, trained_steps=5),
    Model("gqa_4_1", kv_heads=1, vocabulary=127, norm_epsilon=1e-6),
    Model("tied", tied=True, kv_heads=2, trained_steps=5),
    Model("tied_fp32", tied=True, dtype="float32", norm_epsilon=1e-6),
    Model("head_size_16", head_size=16, kv_heads=2, transformers4=True),
    Model("rope_theta_500000", head_size=16, rope_theta=500000.0, vocabulary=127),
    Model("llama3_rope", head_size=16, kv_heads=2, rope_theta=500000.0, rope_scaling=LLAMA3_ROPE, norm_epsilon=1e-6),
    Model("llama3_rope_transformers4", dtype="float32", head_size=16, kv_heads=1, rope_theta=500000.0,
          rope_scaling=LLAMA3_ROPE, transformers4=True),
    Model("sharded", layers=3, kv_heads=2, sharded=True),
    Model("sharded_tied_fp32", layers=4, tied=True, sharded=True, dtype="float32", vocabulary=127),
]


@contextlib.contextmanager
def fp32_means(dtype):
    """Within it, code that asks for fp32 gets dtype."""
    if dtype == torch.float32:
        yield
        return
    saved = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = dtype
    torch.Tensor.float = lambda tensor: tensor.to(dtype)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = saved


def build(row, dtype, generator):
    rope = {"rope_type": "default", "rope_theta": row.rope_theta, **(row.rope_scaling or {})}
    config = transformers.LlamaConfig(
        vocab_size=row.vocabulary, hidden_size=row.hidden, intermediate_size=row.ffn, num_hidden_layers=row.layers,
        num_attention_heads=row.heads, num_key_value_heads=row.kv_heads, head_dim=row.head_size,
        max_position_embeddings=512, rms_norm_eps=row.norm_epsilon, rope_parameters=rope, tie_word_embeddings=row.tied,
        use_cache=False, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight.copy_(1 + 0.2 * noise if weight.dim() == 1 else noise * weight.shape[1] ** -0.5)
    return model.train()


def draw_batch(row, generator):
    tokens = torch.randint(row.vocabulary, (BATCH, SEQUENCE + 1), generator=generator)
    mask = (torch.rand((BATCH, SEQUENCE), generator=generator) < 0.8).to(torch.uint8)
    mask[1] = 0
    return tokens, mask


def forward(model, tokens, mask):
    """Loss and logits. The loss is Hugging Face's: labels of -100 do not count."""
    labels = tokens[:, 1:].masked_fill(mask == 0, -100)
    output = model(input_ids=tokens[:, :-1], labels=labels, shift_labels=labels)
    return output.loss, output.logits


def gradients(model):
    return {f"grad.{name}": weight.grad.clone() for name, weight in model.named_parameters()}


def grad_norm(model):
    return torch.linalg.vector_norm(torch.cat([weight.grad.flatten() for weight in model.parameters()]))


def one_pass(row, model, generator):
    tokens, mask = draw_batch(row, generator)
    loss, logits = forward(model, tokens, mask)
    loss.backward()
    tensors = {"tokens": tokens, "loss_mask": mask, "logits": logits.detach(), "loss": loss.detach(),
               "grad_norm": grad_norm(model), **gradients(model)}
    model.zero_grad()
    return tensors


def train(row, model, generator):
    decayed = [weight for weight in model.parameters() if weight.dim() > 1]
    others = [weight for weight in model.parameters() if weight.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": WEIGHT_DECAY},
                                   {"params": others, "weight_decay": 0.0}], **ADAMW)
    batches = [draw_batch(row, generator) for _ in range(row.trained_steps)]
    losses, norms = [], []
    for tokens, mask in batches:
        optimizer.zero_grad()
        loss, _ = forward(model, tokens, mask)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP))
        optimizer.step()
        losses.append(loss.detach())
    assert max(norms) > CLIP, f"{row.name}: nothing was clipped, norms {norms}"
    weights = {f"trained.weight.{name}": weight.detach().clone() for name, weight in model.named_parameters()}
    return {"trained.tokens": torch.stack([tokens for tokens, _ in batches]),
            "trained.loss_mask": torch.stack([mask for _, mask in batches]),
            "trained.loss": torch.stack(losses), "trained.grad_norm": torch.stack(norms), **weights}


def use_transformers4_keys(path):
    with open(path) as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    config["torch_dtype"] = config.pop("dtype")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    with open(path, "w") as file:
        json.dump(config, file, indent=2)


def write_model(row, folder):
    dtype = getattr(torch, row.dtype)
    generator = torch.Generator().manual_seed(zlib.crc32(row.name.encode()))
    with fp32_means(dtype):
        model = build(row, dtype, generator)
        model.save_pretrained(folder, max_shard_size="40KB" if row.sharded else "1GB")
        tensors = one_pass(row, model, generator)
        if row.trained_steps:
            tensors.update(train(row, model, generator))
    floats = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    assert floats == {dtype}, f"{row.name}: {floats} in a model of {dtype}"
    assert model.model.rotary_emb.inv_freq.dtype == dtype, row.name
    assert os.path.exists(os.path.join(folder, "model.safetensors.index.json")) == row.sharded, row.name
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()},
                                os.path.join(folder, "reference.safetensors"))
    if row.transformers4:
        use_transformers4_keys(os.path.join(folder, "config.json"))
    print(f"{row.name}: loss {tensors['loss']:.6f}, gradient norm {tensors['grad_norm']:.6f}")


def made_from():
    with open(__file__, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return f"{digest} torch {torch.__version__} transformers {transformers.__version__}\n"


def is_made(folder):
    try:
        with open(os.path.join(folder, "made_from")) as file:
            return file.read() == made_from()
    except FileNotFoundError:
        return False


def main():
    folder = sys.argv[1]
    if is_made(folder):
        print(f"{folder} is there already")
        return
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(folder, ignore_errors=True)
    for row in MODELS:
        write_model(row, os.path.join(folder, row.name))
    # Last: a folder without it is made anew.
    with open(os.path.join(folder, "made_from"), "w") as file:
        file.write(made_from())


if __name__ == "__main__":
    main()
