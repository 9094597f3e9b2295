#!/usr/bin/env python3
"""Converts a model at several bit rates and seeds and measures each result against the original.

usage: quality.py EXL3 MODEL TEXT OUT.json [--bits 2,3,4,6] [--seeds 1,2,3] [--jobs 4] [--threads 2] [--flags "..."]

Prints the medians over seeds; where MODEL holds reference-quality.json also the ratio to it.
"""
import argparse, concurrent.futures, json, os, shutil, statistics, subprocess, tempfile

p = argparse.ArgumentParser()
for name in ("exl3", "model", "text", "out"):
    p.add_argument(name)
p.add_argument("--bits", default="2,3,4,6")
p.add_argument("--seeds", default="1,2,3")
p.add_argument("--jobs", type=int, default=1)
p.add_argument("--threads", type=int, default=0)
p.add_argument("--flags", default="", help="more flags for quantize")
p.add_argument("--ctx", default="512")
p.add_argument("--rows", default="48")
a = p.parse_args()


def run(*args):
    done = subprocess.run([a.exl3, *args, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)}: {done.stderr}")
    return json.loads(done.stdout)


def measure(job):
    bits, seed = job
    work = tempfile.mkdtemp()
    try:
        out = os.path.join(work, "model")
        threads = ["--threads", str(a.threads)]
        made = run("quantize", "-i", a.model, "-o", out, "-b", bits, "--seed", seed, *threads, *a.flags.split())
        got = run("eval", "kld", "-m", out, "--ref", a.model, "--text", a.text, "--ctx", a.ctx, "--rows", a.rows,
                  *threads)
        size = sum(os.path.getsize(os.path.join(out, f)) for f in os.listdir(out) if f.endswith(".safetensors"))
        return {"bits": float(bits), "seed": int(seed), "bytes": size, "seconds": made["seconds"], **got}
    finally:
        shutil.rmtree(work)


jobs = [(b, s) for b in a.bits.split(",") for s in a.seeds.split(",")]
with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
    results = list(pool.map(measure, jobs))
try:
    with open(os.path.join(a.model, "reference-quality.json")) as f:
        reference = json.load(f)["results"]
except FileNotFoundError:
    reference = {}
version = subprocess.run([a.exl3, "--version"], capture_output=True, text=True).stdout.strip()
with open(a.out + ".partial", "w") as f:
    json.dump({"version": version, "flags": a.flags, "ctx": int(a.ctx), "rows": int(a.rows), "results": results}, f,
              indent=1)
os.replace(a.out + ".partial", a.out)
for bits in a.bits.split(","):
    mine = [r for r in results if r["bits"] == float(bits)]
    kld, ppl = (statistics.median(r[key] for r in mine) for key in ("mean", "ppl"))
    line = f"{bits} bits: KLD {kld:.6f}, ppl {ppl:.4f} (original {mine[0]['ppl_ref']:.4f}), {mine[0]['bytes']} bytes"
    if (known := reference.get(f"{float(bits):.1f}")) is not None:
        line += f"; {kld / known['kld_mean']:.3f} of the reference's KLD"
    print(line)
