#!/usr/bin/env python3
"""Writes docs/quality.md and its plots from what quality.py measured.

usage: quality_report.py [--out docs]

Reads bench/results/quality-*.json: each file is one way to convert one model. The name after "quality-" up to "--" is the
model, what follows the way ("" is the default one).
"""
import argparse, glob, json, math, os, statistics

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
p = argparse.ArgumentParser()
p.add_argument("--out", default=os.path.join(root, "docs"))
a = p.parse_args()
COLOURS = ["#2f6db5", "#c2492c", "#3b8f4d", "#8a5bb0", "#a07f1f", "#555555"]


def load():
    """{model: {series: {bits: {kld, ppl, bytes, seeds, seconds}}}}"""
    models = {}
    for path in sorted(glob.glob(os.path.join(root, "bench/results/quality-*.json"))):
        model, _, way = os.path.basename(path)[len("quality-"):-len(".json")].partition("--")
        with open(path) as f:
            data = json.load(f)
        points = {}
        for bits in sorted({r["bits"] for r in data["results"]}):
            runs = [r for r in data["results"] if r["bits"] == bits]
            middle = lambda key: statistics.median(r[key] for r in runs)
            points[bits] = {"kld": middle("mean"), "ppl": middle("ppl"), "bytes": runs[0]["bytes"], "seeds": len(runs),
                            "seconds": middle("seconds"), "original": runs[0]["ppl_ref"]}
        series = models.setdefault(model, {})
        series[f"exl3.cpp, {way or 'default'}"] = points
        known = os.path.join(root, "models", model, "reference-quality.json")
        if os.path.exists(known):
            with open(known) as f:
                recorded = json.load(f)
            series["reference converter"] = {
                float(bits): {"kld": r["kld_mean"], "ppl": r["ppl"], "bytes": r["bytes"], "seeds": 1, "seconds": None}
                for bits, r in recorded["results"].items() if bits[0].isdigit()}
    return models


def plot(series, key, label, path):
    """Logarithmic for the divergence, linear for the perplexity; bits per weight across."""
    width, height, left, bottom = 640, 360, 70, 50
    xs = [b for points in series.values() for b in points]
    ys = [v[key] for points in series.values() for v in points.values()]
    log = key == "kld"
    scale = math.log10 if log else float
    low, high = scale(min(ys)), scale(max(ys))
    high += 0.05 * (high - low or 1)
    x = lambda b: left + (b - min(xs)) / (max(xs) - min(xs) or 1) * (width - left - 20)
    y = lambda v: height - bottom - (scale(v) - low) / (high - low or 1) * (height - bottom - 20)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for b in sorted(set(xs)):
        out.append(f'<text x="{x(b):.1f}" y="{height - bottom + 18}" text-anchor="middle">{b:g}</text>')
        out.append(f'<line x1="{x(b):.1f}" x2="{x(b):.1f}" y1="20" y2="{height - bottom}" stroke="#e4e4e4"/>')
    ticks = [10.0 ** e for e in range(math.floor(low), math.ceil(high) + 1)] if log else \
        [low + (high - low) * i / 4 for i in range(5)]
    for t in ticks:
        if low - 1e-9 <= scale(t) <= high + 1e-9:
            out.append(f'<text x="{left - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{t:.4g}</text>')
            out.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(t):.1f}" y2="{y(t):.1f}" stroke="#e4e4e4"/>')
    out.append(f'<text x="{(left + width) / 2}" y="{height - 12}" text-anchor="middle">bits per weight</text>')
    out.append(f'<text transform="translate(16 {height / 2}) rotate(-90)" text-anchor="middle">{label}</text>')
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        at = [(x(b), y(v[key])) for b, v in sorted(points.items())]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                   + " ".join(f"{px:.1f},{py:.1f}" for px, py in at) + '"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}"/>' for px, py in at]
        out.append(f'<text x="{width - 30}" y="{36 + 18 * i}" text-anchor="end" fill="{colour}">{name}</text>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")


def table(series):
    reference = series.get("reference converter", {})
    lines = ["| conversion | bits | bytes | KL divergence | of the reference's | perplexity | seeds | seconds |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, points in series.items():
        for bits, v in sorted(points.items()):
            ratio = f"{v['kld'] / reference[bits]['kld']:.3f}" if bits in reference else ""
            seconds = "" if v["seconds"] is None else f"{v['seconds']:.0f}"
            lines.append(f"| {name} | {bits:g} | {v['bytes']} | {v['kld']:.5f} | {ratio} | {v['ppl']:.3f} | {v['seeds']} | "
                         f"{seconds} |")
    return "\n".join(lines)


text = ["# Quality of converted models", "",
        "Made by `scripts/quality_report.py` from `bench/results/quality-*.json`, which `scripts/quality.py` measures: mean KL "
        "divergence from the original in nats per token and perplexity on held-out text, medians over seeds. \"bits\" is what "
        "`-b` asked for; conversions of one row have the same file size. What each step is and costs stands in "
        "[design/distill.md](design/distill.md) and [design/quant.md](design/quant.md).", ""]
for model, series in load().items():
    text += [f"## {model}", ""]
    for key, label in (("kld", "KL divergence, nats"), ("ppl", "perplexity")):
        picture = f"quality-{model}-{key}.svg"
        plot(series, key, label, os.path.join(a.out, picture))
        text.append(f"![{label} of {model} by bits per weight]({picture})")
    text += ["", table(series), ""]
with open(os.path.join(a.out, "quality.md"), "w") as f:
    f.write("\n".join(text))
