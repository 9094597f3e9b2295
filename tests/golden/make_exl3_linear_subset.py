#!/usr/bin/env python3
"""Cuts tests/golden/data/exl3-linear.safetensors from the full golden vectors.

usage: make_exl3_linear_subset.py VECTORS.safetensors OUT.safetensors

Both Hadamard transforms of the format work on blocks of 128 channels, so the first 128 x 128 block
of a layer is a layer of its own: its weight is the same block of the full weight.
"""
import json
import struct
import sys

import numpy as np

DTYPES = {"F16": np.float16, "F32": np.float32, "I16": np.int16, "I32": np.int32}
LAYERS = ["mul1.k4", "mcg.k2", "3inst.k3"]


def read(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    for name, e in header.items():
        if name == "__metadata__":
            continue
        begin, end = e["data_offsets"]
        yield name, np.frombuffer(data[begin:end], DTYPES[e["dtype"]]).reshape(e["shape"])


def write(path, tensors):
    names = {v: k for k, v in DTYPES.items()}
    header, offset = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": names[t.dtype.type], "shape": list(t.shape),
                        "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(np.ascontiguousarray(t).tobytes())


CUT = {
    "trellis": lambda t: t[:8, :8],
    "suh": lambda t: t[:128],
    "svh": lambda t: t[:128],
    "inner_fp16": lambda t: t[:128, :128],
    "weight_fp32": lambda t: t[:128, :128],
    "x": lambda t: t[:, :128],
}

if __name__ == "__main__":
    full = dict(read(sys.argv[1]))
    write(sys.argv[2], {f"{layer}.{part}": cut(full[f"{layer}.{part}"])
                        for layer in LAYERS for part, cut in CUT.items()})
