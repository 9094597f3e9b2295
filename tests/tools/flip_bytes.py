#!/usr/bin/env python3
"""Damages a copy of a checkpoint in many ways and checks that exl3 survives each.

For every trial one file of the copy (config, index, tokenizer, the header or the data of a safetensors file) gets random
damage. `exl3 inspect --check`, `exl3 logits` and `exl3 tokenize` must then end with status 0 or 1 within the time limit; a
status of 1 must come with an `error:` line and without an output file, and no sanitizer may report anything. What fails is
kept.

A trial depends on --seed and its number alone: `--trial 17` repeats one. Exit status: 0 all passed, 1 some failed, 2 the
undamaged checkpoint or the arguments are wrong. Needs nothing beyond Python's own library.
"""
import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SANITIZER = re.compile(r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error:|SUMMARY: \w*Sanitizer")
TEXT = "One Two-3.14 <s></s> \u00e9\u4f60\u597d \U0001f600\n\t  end"
INTERESTING = [0x00, 0xFF, 0x7F, 0x80, ord('"'), ord("{"), ord("}"), ord("["), ord("]"), ord(","), ord("-"), ord("9"), ord("0")]


STRANGE = [b"0", b"-1", b"1", b"7", b"65536", b"2147483647", b"-2147483648", b"9007199254740993", b"1e30", b"0.5", b"null",
           b"true", b"[]", b"{}", b'""', b'"x"', b"[1, 2]"]
VALUE = re.compile(rb'(?<=[:\[,\s])(-?[0-9][0-9.eE+-]*|true|false|null|"[^"\\]{0,40}"(?!\s*:))')


class Part:
    """A range of one file that damage goes to: the whole of a text file, or header or data of a tensor file."""

    def __init__(self, file, kind, begin, end):
        self.file, self.kind, self.begin, self.end = file, kind, begin, end


def parts_of(folder):
    parts = []
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        if path.suffix == ".safetensors" and size > 8:
            with path.open("rb") as f:
                header = 8 + struct.unpack("<Q", f.read(8))[0]
            parts.append(Part(path.name, "length", 0, 8))
            parts.append(Part(path.name, "header", 8, header))
            if size > header:
                parts.append(Part(path.name, "data", header, size))
        elif path.suffix in (".json", ".jinja", ".model") and size > 0:
            parts.append(Part(path.name, path.name, 0, size))
    return parts


def damage(path, part, rng):
    """Changes the file and says how."""
    with path.open("r+b") as f:
        how = rng.choice(["bit", "bit", "byte", "byte", "digit", "value", "value", "run", "cut", "delete", "insert"])
        at = rng.randrange(part.begin, part.end)
        if how == "value":  # stays JSON: what follows the parser sees it
            f.seek(0)
            text = f.read()
            found = list(VALUE.finditer(text)) if part.file.endswith(".json") else []
            if found:
                old, new = rng.choice(found), rng.choice(STRANGE)
                f.seek(0)
                f.write(text[:old.start()] + new + text[old.end():])
                f.truncate()
                return f"{old.group().decode('utf-8', 'replace')} at byte {old.start()} is {new.decode()}"
            how = "bit"
        if how == "digit":  # numbers of another size reach further than broken syntax
            f.seek(part.begin)
            text = f.read(min(part.end - part.begin, 1 << 24))
            digits = [m.start() for m in re.finditer(rb"[0-9]", text)] if part.kind != "data" else []
            if digits:
                at = part.begin + rng.choice(digits)
                f.seek(at)
                old = f.read(1)[0] - ord("0")
                f.seek(at)
                f.write(b"%d" % ((old + rng.randrange(1, 10)) % 10))
                return f"another digit at byte {at}"
            how = "byte"
        f.seek(at)
        if how == "bit":
            old = f.read(1)[0]
            bit = rng.randrange(8)
            f.seek(at)
            f.write(bytes([old ^ 1 << bit]))
            return f"bit {bit} of byte {at}"
        if how == "byte":
            new = rng.choice(INTERESTING) if rng.random() < 0.5 else rng.randrange(256)
            f.write(bytes([new]))
            return f"byte {at} is {new:#04x}"
        if how == "run":
            n = min(rng.randrange(2, 65), part.end - at)
            f.write(rng.randbytes(n))
            return f"{n} random bytes at {at}"
        if how == "cut":
            f.truncate(at)
            return f"cut to {at} bytes"
        n = rng.randrange(1, 9)
        rest = f.read()
        f.seek(at)
        if how == "delete":
            f.write(rest[n:])
            f.truncate()
            return f"{n} bytes deleted at {at}"
        f.write(bytes(rng.choice(INTERESTING) for _ in range(n)) + rest)
        return f"{n} bytes inserted at {at}"


def run(command, args):
    """None if the program behaved, else what was wrong; with it the exit status and stderr."""

    def limits():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if args.memory:
            resource.setrlimit(resource.RLIMIT_AS, (args.memory << 20, args.memory << 20))

    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=limits)
    try:
        stderr = process.communicate(timeout=args.timeout)[1].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stderr = process.communicate()[1].decode("utf-8", "replace")
        return f"still running after {args.timeout} s", None, stderr
    status = process.returncode
    if SANITIZER.search(stderr):
        return "a sanitizer report", status, stderr
    if status < 0:
        return f"killed by {signal.Signals(-status).name}", status, stderr
    if status not in (0, 1):
        return f"exit status {status}", status, stderr
    if status == 1:
        errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
        if len(errors) != 1 or len(errors[0]) < 20:
            return f"exit status 1 with {len(errors)} lines that start with 'error: '", status, stderr
    return None, status, stderr


def check(folder, args, scratch):
    """Runs the commands; a list of (command, problem, status, stderr)."""
    ids, out = scratch / "ids.json", scratch / "out" / "logits.safetensors"
    ids.write_text(json.dumps(args.ids))
    results = []
    for command in ([args.exl3, "inspect", str(folder), "--check"],
                    [args.exl3, "logits", "-m", str(folder), "--ids", str(ids), "-o", str(out), "--device", args.device],
                    [args.exl3, "tokenize", "-m", str(folder), "--text", TEXT]):
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()
        problem, status, stderr = run(command, args)
        left = sorted(p.name for p in out.parent.iterdir())
        wanted = [out.name] if "logits" in command and status == 0 else []
        if problem is None and left != wanted:
            problem = f"the output folder holds {left}, needed {wanted}"
        results.append((command, problem, status, stderr))
    return results


def restore(pristine, copy, file):
    shutil.copyfile(pristine / file, copy / file)


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("exl3", help="the program")
    p.add_argument("model", type=Path, help="folder of an intact checkpoint; it is copied, never changed")
    p.add_argument("--trials", type=int, default=200)
    p.add_argument("--trial", type=int, help="run this one alone")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", help="damage parts whose file or kind contains this (config, header, data, tokenizer...)")
    p.add_argument("--timeout", type=float, default=10, help="seconds a command may take")
    p.add_argument("--memory", type=int, default=0, help="MiB of address space a command may use; 0: any (needed by asan)")
    p.add_argument("--device", default="cpu")
    p.add_argument("--ids", type=json.loads, default=[1, 2, 3], help="token ids for logits")
    p.add_argument("--verbose", action="store_true", help="print every trial")
    p.add_argument("--keep", type=Path, default=Path("flip-findings"), help="where failing trials go")
    return p.parse_args()


def main():
    args = parse_arguments()
    args.exl3 = str(Path(args.exl3).resolve())
    if not args.model.is_dir() or not os.access(args.exl3, os.X_OK):
        print(f"error: found no folder {args.model} or no program {args.exl3}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        pristine, copy = args.model.resolve(), scratch / "model"
        copy.mkdir()
        for path in pristine.iterdir():
            if path.is_file():
                shutil.copyfile(path, copy / path.name)
        for command, problem, status, stderr in check(copy, args, scratch):
            if problem or status != 0:
                print(f"error: the undamaged checkpoint fails {command}: {problem or status}\n{stderr}", file=sys.stderr)
                return 2

        parts = [p for p in parts_of(copy) if not args.only or args.only in p.file or args.only in p.kind]
        if not parts:
            print(f"error: found nothing to damage in {args.model}", file=sys.stderr)
            return 2
        failures, counts = 0, {}
        for trial in range(args.trials) if args.trial is None else [args.trial]:
            rng = random.Random(f"{args.seed}/{trial}")
            part = rng.choice(parts)
            what = damage(copy / part.file, part, rng)
            results = check(copy, args, scratch)
            tally = counts.setdefault(part.kind, [0, 0])
            tally[0] += 1
            tally[1] += any(status == 1 for _, _, status, _ in results)
            if args.verbose:
                print(f"trial {trial}: {part.file}: {what}: exit statuses {[status for _, _, status, _ in results]}")
            for command, problem, _, stderr in results:
                if problem is None:
                    continue
                failures += 1
                kept = args.keep / f"seed-{args.seed}-trial-{trial}"
                kept.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(copy / part.file, kept / part.file)
                (kept / f"{command[1]}.log").write_text(f"{part.file}: {what}\n{problem}\n{' '.join(command)}\n{stderr}")
                print(f"FAIL trial {trial}: {part.file}: {what}: {command[1]}: {problem} (kept in {kept})", flush=True)
            restore(pristine, copy, part.file)

    for kind, (trials, refused) in sorted(counts.items()):
        print(f"{kind}: {trials} trials, {refused} refused")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
