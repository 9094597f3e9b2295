#!/usr/bin/env python3
"""Writes data/gguf.json: what the reference package for GGUF makes of blocks of every tensor type,
and how it names the tensors of the architectures that import-gguf knows.

    pip install gguf==0.19.0 && python3 make_gguf_data.py

Blocks are pseudo-random bytes that the test makes again (noise64 of base/random.h); of 4096 blocks
a type, enough for every entry of the largest grid, the file holds the first decoded, and a digest
of all."""
import json
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize
from gguf.constants import MODEL_ARCH, MODEL_ARCH_NAMES
from gguf.tensor_mapping import get_tensor_name_map

BLOCKS = 4096
U64 = np.uint64
# Bytes of the block where a scale in f16 stands.
HALVES = dict(Q4_0=[0], Q4_1=[0, 2], Q5_0=[0], Q5_1=[0, 2], Q8_0=[0], Q2_K=[80, 82], Q3_K=[108],
              Q4_K=[0, 2], Q5_K=[0, 2], Q6_K=[208], IQ1_S=[0], IQ2_XXS=[0], IQ2_XS=[0], IQ2_S=[0],
              IQ3_XXS=[0], IQ3_S=[0], IQ4_NL=[0], IQ4_XS=[0], TQ1_0=[52], TQ2_0=[64], MXFP4=[],
              F16=[0], BF16=[], IQ1_M=[])
ARCHS = ["LLAMA", "MISTRAL3", "QWEN2", "QWEN3", "GEMMA2", "GEMMA3", "PHI3", "SMOLLM3", "OLMO2",
         "QWEN3MOE", "COMMAND_R", "COHERE2", "GLM4", "EXAONE4", "SEED_OSS", "ERNIE4_5", "ARCEE"]
LEAVES = """input_layernorm self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj
self_attn.qkv_proj self_attn.q_norm self_attn.k_norm post_attention_layernorm
pre_feedforward_layernorm post_feedforward_layernorm post_self_attn_layernorm post_mlp_layernorm
mlp.gate_proj mlp.up_proj mlp.down_proj mlp.gate mlp.experts.gate_proj mlp.experts.up_proj
mlp.experts.down_proj block_sparse_moe.gate block_sparse_moe.experts.w1 block_sparse_moe.experts.w2
block_sparse_moe.experts.w3""".split()
FUSED = {"phi3": {"self_attn.qkv_proj", "mlp.gate_up_proj"}, "glm4": {"mlp.gate_up_proj"}}


def mix(z):
    z = (z ^ (z >> U64(30))) * U64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> U64(27))) * U64(0x94d049bb133111eb)
    return z ^ (z >> U64(31))


def noise(seed, n):
    return mix(mix(mix(U64(seed) + U64(0x9e3779b97f4a7c15)) + np.arange(n, dtype=U64)) + U64(1))


def blocks_of(kind):
    size = GGML_QUANT_SIZES[kind][1]
    b = (noise(kind.value, BLOCKS * size) >> U64(56)).astype(np.uint8).reshape(BLOCKS, size)
    # Scales of an ordinary size; f16 has infinities and NaNs, which compare badly.
    for at in HALVES[kind.name]:
        b[:, at + 1] = (b[:, at + 1] & 0x83) | 0x20
    if kind.name == "BF16":
        b[:, 1] = (b[:, 1] & 0x80) | 0x3c
    if kind.name == "IQ1_M":
        b[:, 55] = (b[:, 55] & 0x0f) | 0x20
    if kind.name == "MXFP4":
        b[:, 0] &= 0x7f
    return b


def digest(values):
    """Order counts: bits of value i plus i, mixed and added up."""
    bits = np.ascontiguousarray(values, dtype=np.float32).reshape(-1).view(np.uint32).astype(U64)
    return int(np.add.reduce(mix(bits + (np.arange(bits.size, dtype=U64) << U64(32)))))


def block_cases():
    for name in HALVES:
        kind = GGMLQuantizationType[name]
        b = blocks_of(kind)
        if name == "F16":
            values = b.view(np.float16).astype(np.float32)
        else:
            values = dequantize(b, kind)
        values = values.reshape(BLOCKS, -1)
        yield dict(type=kind.value, name=name, elements=GGML_QUANT_SIZES[kind][0],
                   bytes=GGML_QUANT_SIZES[kind][1],
                   first=[float(v) for v in values[0]], digest=f"{digest(values):016x}")


def names():
    for arch in ARCHS:
        name = MODEL_ARCH_NAMES[MODEL_ARCH[arch]]
        table = get_tensor_name_map(MODEL_ARCH[arch], 1)
        fused = FUSED.get(name, set())
        leaves = [l for l in LEAVES if not (fused and l == "mlp.up_proj")] + sorted(fused)
        pairs = {}
        for hf in ["model.embed_tokens", "model.norm"] + ["model.layers.0." + l for l in leaves]:
            if hf.endswith("qkv_proj") and "self_attn.qkv_proj" not in fused:
                continue
            if table.get_name(hf):
                pairs.setdefault(table.get_name(hf), []).append(hf)
        yield name, pairs


if __name__ == "__main__":
    with np.errstate(over="ignore"):
        cases = list(block_cases())
    out = pathlib.Path(__file__).parent / "data" / "gguf.json"
    out.write_text(json.dumps(dict(blocks=cases, names=dict(names())), indent=1) + "\n")
