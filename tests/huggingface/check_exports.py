#!/usr/bin/env python3
"""What comes back from `layline checkpoint import` and `export`: check_exports.py LAYLINE FOLDER

For each model that make_reference.py wrote to FOLDER: imported and exported in its own type, in one file and in many,
transformers load the same weights, bit for bit, with the same configuration, and compute the same logits.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
import torch
import transformers

KEYS = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
        "rms_norm_eps", "tie_word_embeddings", "max_position_embeddings", "bos_token_id", "eos_token_id"]


def load(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()


def check(layline, folder, work):
    config = transformers.AutoConfig.from_pretrained(folder)
    name = "fp64" if "float64" in str(config.dtype) else "fp32"
    dtype = torch.float64 if name == "fp64" else torch.float32
    subprocess.run([layline, "checkpoint", "import", folder, work / "saved", "--dtype", name], check=True,
                   capture_output=True)
    expected = load(folder, dtype)
    tokens = torch.arange(2 * 20).reshape(2, 20) % config.vocab_size
    for shard_size in ("5GB", "6kb"):
        exported = work / shard_size
        subprocess.run([layline, "checkpoint", "export", work / "saved", exported, "--dtype", name,
                        "--shard-size", shard_size], check=True, capture_output=True)
        found = load(exported, dtype)
        for key in KEYS:
            assert getattr(found.config, key) == getattr(expected.config, key), f"{folder.name}: {key}"
        weights, wanted = found.state_dict(), expected.state_dict()
        assert weights.keys() == wanted.keys(), folder.name
        for key, weight in wanted.items():
            assert torch.equal(weights[key], weight), f"{folder.name}: {key}"
        with torch.no_grad():
            assert torch.equal(found(tokens).logits, expected(tokens).logits), f"{folder.name}: logits"
    assert (work / "6kb" / "model.safetensors.index.json").exists()


def main():
    layline, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folders = sorted(path.parent for path in root.glob("*/config.json"))
    assert len(folders) > 5, f"{root} has {len(folders)} models"
    for folder in folders:
        with tempfile.TemporaryDirectory() as work:
            check(layline, folder, pathlib.Path(work))
    print(f"{len(folders)} models")


main()
