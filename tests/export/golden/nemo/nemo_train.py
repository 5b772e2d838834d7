import sys

import torch
import yaml
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig
from megatron.core.transformer.enums import AttnBackend
from nemo import lightning as nl
from nemo.collections import llm

with open(sys.argv[1]) as file:
    config = yaml.safe_load(file)

model = dict(config["model"])
model["attention_backend"] = AttnBackend[model["attention_backend"]]
# Llama 3.1's configuration is Llama's with scaled RoPE.
kind = llm.Llama31Config if "scale_factor" in model else llm.LlamaConfig
strategy = dict(config["strategy"])
strategy["pipeline_dtype"] = getattr(torch, strategy["pipeline_dtype"])
strategy["ddp"] = DistributedDataParallelConfig(**config["ddp"])

llm.pretrain(
    model=llm.LlamaModel(kind(**model)),
    data=llm.MockDataModule(**config["data"]),
    trainer=nl.Trainer(
        accelerator="gpu",
        strategy=nl.MegatronStrategy(**strategy),
        plugins=nl.MegatronMixedPrecision(**config["precision"]),
        limit_val_batches=0,
        num_sanity_val_steps=0,
        **config["trainer"],
    ),
    optim=nl.MegatronOptimizerModule(config=OptimizerConfig(**config["optim"])),
)
