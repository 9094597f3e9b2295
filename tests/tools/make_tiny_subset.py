#!/usr/bin/env python3
"""Write the committed subset of the golden tiny models.

usage: make_tiny_subset.py GOLDEN_DIR OUT_DIR      (numpy only)

GOLDEN_DIR holds tiny-models/{manifest.json, logits.safetensors}; the configs stand in
GOLDEN_DIR/../spec/tiny-configs. OUT_DIR/NAME.json gets the config, the list of tensors (numbers in
names folded into ranges) and a few of the logits. Tensors of vision and audio parts are left out.
"""
import json, pathlib, re, struct, sys
import numpy as np

POSITIONS = (17, 99)  # rows kept: one inside the first chunks, one that sees every token
VOCAB = 96            # logits kept of each row
OTHER = re.compile(r"visual|vision|multi_modal|audio|embed_vision|mm_projector")


def read_tensor(path, name):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        info = json.loads(f.read(n))[name]
        f.seek(8 + n + info["data_offsets"][0])
        size = info["data_offsets"][1] - info["data_offsets"][0]
        return np.frombuffer(f.read(size), "<f4").reshape(info["shape"])


def fold(tensors):
    """[pattern, ranges, shape, base, amp]: '#' stands for a number of the range of that place."""
    groups = {}
    for name, t in tensors.items():
        if OTHER.search(name):
            continue
        numbers = tuple(int(n) for n in re.findall(r"(?<=\.)\d+(?=\.)", name))
        pattern = re.sub(r"(?<=\.)\d+(?=\.)", "#", name)
        groups.setdefault((pattern, tuple(t["shape"]), t["base"], t["amp"]), []).append(numbers)
    out = []
    for (pattern, shape, base, amp), numbers in sorted(groups.items()):
        first = sorted({n[0] for n in numbers}) if numbers[0] else []
        second = sorted({n[1] for n in numbers}) if numbers[0] and len(numbers[0]) > 1 else []
        assert len(numbers) == max(1, len(first)) * max(1, len(second)), pattern
        out.append([pattern, [r for r in (first, second) if r], list(shape), base, amp])
    return out


def main():
    golden, out = map(pathlib.Path, sys.argv[1:3])
    manifest = json.loads((golden / "tiny-models/manifest.json").read_text())
    rows = [manifest["positions"].index(p) for p in POSITIONS]
    for name, model in manifest["models"].items():
        logits = read_tensor(golden / "tiny-models/logits.safetensors", name + ".hf_fp32")
        config = json.loads((golden / "../spec/tiny-configs" / (name + ".json")).read_text())
        data = {
            "reference": model["reference"],
            "ids": manifest["ids"],
            "positions": list(POSITIONS),
            "logits": [[float(f"{v:.7g}") for v in logits[r, :VOCAB]] for r in rows],
            "salt": manifest["salt"],
            "config": config,
            "tensors": fold(model["tensors"]),
        }
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items())
        (out / (name + ".json")).write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
