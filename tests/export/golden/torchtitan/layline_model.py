# Llama 3.1 8B: adds the model to torchtitan's Llama 3 flavors.
from torchtitan.models.llama3 import llama3_args
from torchtitan.models.llama3.model.args import RoPEScalingArgs, TransformerModelArgs

llama3_args["llama-3.1-8b"] = TransformerModelArgs(
    dim=4096,
    n_layers=32,
    n_heads=32,
    n_kv_heads=8,
    vocab_size=128256,
    multiple_of=14336,
    ffn_dim_multiplier=1,
    norm_eps=1e-05,
    rope_theta=500000,
    max_seq_len=8192,
    rope_scaling_args=RoPEScalingArgs(
        scaling_factor=8,
        low_freq_factor=1,
        high_freq_factor=4,
        original_max_position_embeddings=8192,
    ),
)
