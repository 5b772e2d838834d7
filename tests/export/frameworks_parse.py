#!/usr/bin/env python3
"""Reads exported files with the frameworks' own parsers, and compares what they understood with the layout:
frameworks_parse.py PACKAGES JOB { FRAMEWORK FOLDER LAYOUT }…

PACKAGES is the folder of scripts/frameworks-requirements.txt, JOB is like "gpus=64 global_batch=2048 layers=40".
"""

import argparse
import dataclasses
import importlib
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

packages, job, *cases = sys.argv[1:]
job = {name: int(value) for name, value in (item.split("=") for item in job.split())}
sys.path.insert(0, packages)


def hollow(name, **names):
    """A package whose modules can be imported without its __init__, which would import GPU libraries."""
    module = types.ModuleType(name)
    module.__path__ = [str(Path(packages, *name.split(".")))]
    vars(module).update(names)
    sys.modules[name] = module


hollow("megatron.core")
hollow("megatron.core.transformer")
hollow("torchtitan")
hollow("torchtitan.models")
hollow("torchtitan.models.llama3", llama3_args={})

import torch
import yaml
from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.transformer_config import TransformerConfig
from torchtitan.config import ConfigManager
from torchtitan.distributed.parallel_dims import ParallelDims


def wanted(layout):
    axes = {"cp": 1, "vp": 1} | {name: int(n) for name, n in re.findall(r"\b(dp|tp|pp|cp|vp|mb)(\d+)", layout)}
    checkpointing = re.search(r"ckpt=(\S+)", layout)
    return job | axes | {"ckpt": checkpointing[1] if checkpointing else "none", "sp": layout.split().count("sp")}


def from_megatron_core(options, gpus, global_batch, micro_batch):
    """TransformerConfig checks the options as at the start of a training run."""
    config = TransformerConfig(**options)
    dp = gpus // (config.tensor_model_parallel_size * config.pipeline_model_parallel_size * config.context_parallel_size)
    ConstantNumMicroBatchesCalculator(global_batch, micro_batch, dp, False, 0)
    checkpointing = config.recompute_granularity or "none"
    if config.recompute_method == "block":
        checkpointing += f":{config.recompute_num_layers}"
    return {
        "dp": dp,
        "tp": config.tensor_model_parallel_size,
        "pp": config.pipeline_model_parallel_size,
        "cp": config.context_parallel_size,
        "vp": config.virtual_pipeline_model_parallel_size or 1,
        "mb": micro_batch,
        "sp": int(config.sequence_parallel),
        "ckpt": checkpointing,
        "gpus": gpus,
        "global_batch": global_batch,
        "layers": config.num_layers,
        "hidden": config.hidden_size,
        "heads": config.num_attention_heads,
    }


def kind_of(field):
    kinds = [field.type, *typing.get_args(field.type)]
    return next((kind for kind in (bool, int, float, str) if kind in kinds), None)


def read_megatron(folder):
    """The script runs, with an srun that shows what it is given."""
    functions = {"BASH_FUNC_srun%%": "() { printf '%s\\n' \"$@\"; }", "BASH_FUNC_scontrol%%": "() { echo node0; }"}
    variables = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "", "MEGATRON_PATH": "/megatron"}
    run = ["bash", "megatron.sh"]
    words = subprocess.run(run, cwd=folder, env=functions | variables, check=True, capture_output=True, text=True).stdout
    parser = argparse.ArgumentParser(allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for field in dataclasses.fields(TransformerConfig):
        how = {"action": "store_true"} if kind_of(field) is bool else {"type": kind_of(field) or str}
        if field.name == "attention_backend":
            how = {"type": lambda name: AttnBackend[name]}
        parser.add_argument("--" + field.name.replace("_", "-"), **how)
    numbers = ["nnodes", "nproc-per-node", "micro-batch-size", "global-batch-size", "seq-length"]
    for name in [*numbers, "num-virtual-stages-per-pipeline-rank"]:
        parser.add_argument("--" + name, type=int)
    options = vars(parser.parse_known_args(words.splitlines())[0])
    nodes, per_node, micro_batch, global_batch, seq_len = (options.pop(name.replace("-", "_")) for name in numbers)
    # Megatron-LM's arguments.py hands these two on.
    if (stages := options.pop("num_virtual_stages_per_pipeline_rank", None)) is not None:
        options["virtual_pipeline_model_parallel_size"] = stages
    options["pipeline_dtype"] = torch.bfloat16
    return from_megatron_core(options, nodes * per_node, global_batch, micro_batch) | {"seq_len": seq_len}


def read_nemo(folder):
    tree = yaml.safe_load(Path(folder, "nemo.yaml").read_text())
    known = {field.name for field in dataclasses.fields(TransformerConfig)}
    options = {name: value for name, value in (tree["strategy"] | tree["model"]).items() if name in known}
    options["pipeline_dtype"] = getattr(torch, options["pipeline_dtype"])
    options["attention_backend"] = AttnBackend[options["attention_backend"]]
    data = tree["data"]
    gpus = tree["trainer"]["devices"] * tree["trainer"]["num_nodes"]
    found = from_megatron_core(options, gpus, data["global_batch_size"], data["micro_batch_size"])
    return found | {"seq_len": data["seq_length"]}


def read_torchtitan(folder):
    config = ConfigManager().parse_args(["--job.config_file", str(Path(folder, "torchtitan.toml"))])
    parallel, training = config.parallelism, config.training
    replicas, shards = parallel.data_parallel_replicate_degree, parallel.data_parallel_shard_degree
    tp, pp, cp = parallel.tensor_parallel_degree, parallel.pipeline_parallel_degree, parallel.context_parallel_degree
    ParallelDims(replicas, shards, cp, tp, pp, ep=1, etp=1, world_size=job["gpus"])
    sys.path.insert(0, folder)
    sys.modules.pop(config.experimental.custom_import, None)
    importlib.invalidate_caches()
    importlib.import_module(config.experimental.custom_import)
    sys.path.remove(folder)
    model = sys.modules["torchtitan.models.llama3"].llama3_args[config.model.flavor]
    stages = parallel.module_fqns_per_model_part
    return {
        "dp": replicas * shards,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "vp": len(stages) // pp if stages else 1,
        "mb": parallel.pipeline_parallel_microbatch_size if pp > 1 else training.local_batch_size,
        "sp": int(tp > 1),
        "ckpt": config.activation_checkpoint.mode,
        "gpus": replicas * shards * cp * tp * pp,
        "global_batch": training.global_batch_size,
        "seq_len": training.seq_len,
        "layers": model.n_layers,
        "hidden": model.dim,
        "heads": model.n_heads,
    }


READERS = {"megatron": read_megatron, "nemo": read_nemo, "torchtitan": read_torchtitan}
wrong = 0
for framework, folder, layout in zip(*[iter(cases)] * 3, strict=True):
    found = READERS[framework](folder)
    for name, value in wanted(layout).items():
        if found[name] != value:
            wrong += 1
            print(f"{framework}, {layout}: {name} is {found[name]}, not {value}", file=sys.stderr)
sys.exit(wrong > 0)
