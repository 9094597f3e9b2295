#!/usr/bin/env bash
# scripts/gpu_test.sh [--bin DIR] [--out DIR] [PART...]: checks and measures the GPU backend on a machine
# with a GPU. PARTs: ops, models, sanitizer, bench; all of them by default. Uses the programs in DIR
# (build/dev/bin; built first if they are missing there), writes text and JSON to the other DIR
# (build/gpu-results) and ends with a line per part. Works from any folder.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=build/dev/bin out=build/gpu-results parts=()
while [ $# -gt 0 ]; do
    case $1 in
        --bin) bin=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        ops | models | sanitizer | bench) parts+=("$1"); shift ;;
        *) echo "error: '$1': needed ops, models, sanitizer, bench, --bin DIR or --out DIR" >&2; exit 2 ;;
    esac
done
[ ${#parts[@]} -eq 0 ] && parts=(ops models sanitizer bench)
if [ ! -x "$bin/exl3" ]; then
    cmake --preset dev && cmake --build --preset dev || exit 1
fi
mkdir -p "$out"
"$bin/exl3" doctor | tee "$out/doctor.txt"
grep -q '^cuda:' "$out/doctor.txt" || { echo "error: exl3 doctor finds no GPU" >&2; exit 1; }
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv >"$out/card.txt" 2>&1

# What to measure: "name|arguments of exl3 bench". EXL3_BENCHES replaces it, one a line.
benches=${EXL3_BENCHES:-"8b-4-mul1|--synthetic llama8b --bits 4 --context 0,2048,32768 --batch 1,8,16 --prefill 512,4096,32768
8b-2-mul1|--synthetic llama8b --bits 2 --context 0 --batch 1 --prefill 512
8b-3-mul1|--synthetic llama8b --bits 3 --context 0 --batch 1 --prefill 512
8b-6-mul1|--synthetic llama8b --bits 6 --context 0 --batch 1 --prefill 512
8b-4-mcg|--synthetic llama8b --bits 4 --codebook mcg --context 0 --batch 1 --prefill 512
8b-4-3inst|--synthetic llama8b --bits 4 --codebook 3inst --context 0 --batch 1 --prefill 512
8b-4-kv4|--synthetic llama8b --bits 4 --kv-bits 4 --context 0,32768 --batch 1 --prefill 512"}

run_ops() { "$bin/exl3_ops_tests" --gtest_brief=1 "${EXL3_OPS_FILTER:+--gtest_filter=$EXL3_OPS_FILTER}" >"$out/ops.txt" 2>&1; }
run_models() { "$bin/exl3_arch_tests" --gtest_brief=1 >"$out/models.txt" 2>&1; }

# A few cases of each op under each tool: the tools slow kernels down a hundredfold.
run_sanitizer() {
    local filter=${EXL3_SANITIZER_FILTER:-RmsNorm.MatchesReference:Rope.ManyTokens:Add*:Embed*:NextToken.Captured*:KvAppend.QuantizesToTheBits*:Attention.MixesPrefillAndDecode:Linear.ReadsAndWrites*:Gemm.Lower*:Hadamard.TouchesOnly*:Exl3Linear.RowsMayBePart*:Exl3Decode.WritesRows*}
    local tool status=0
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here" >"$out/sanitizer.txt"; return 1; }
    for tool in memcheck racecheck initcheck; do
        EXL3_TEST_DEVICES=gpu timeout "${EXL3_SANITIZER_SECONDS:-240}" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$bin/exl3_ops_tests" --gtest_brief=1 --gtest_filter="$filter" >"$out/sanitizer-$tool.txt" 2>&1 || status=$?
    done
    return $status
}

run_bench() {
    local status=0 name arguments
    while IFS='|' read -r name arguments; do
        [ -n "$name" ] || continue
        # shellcheck disable=SC2086 — the arguments are words
        if "$bin/exl3" bench --device "${EXL3_DEVICE:-cuda:0}" --json $arguments >"$out/bench-$name.json" 2>"$out/bench-$name.log"; then
            python3 - "$out/bench-$name.json" "$name" "$arguments" <<'PY'
import json, sys
path, name, arguments = sys.argv[1:]
r = json.load(open(path))
r["arguments"] = arguments
json.dump(r, open(path, "w"), indent=1)
d = " ".join(f"c{x['context']}b{x['batch']}:{x['tps']:.0f}" for x in r["decode"])
p = " ".join(f"{x['tokens']}:{x['tps']:.0f}" for x in r["prefill"])
print(f"{name:12} copy {r['copy_gbps']:.0f} GB/s load {r['load_seconds']:.2f}s mem {r['memory_bytes']/1e9:.2f}GB decode {d} prefill {p}")
PY
        else
            status=1
            echo "$name failed: $(tail -1 "$out/bench-$name.log")"
        fi
    done <<<"$benches"
    return $status
}

failed=0
for part in "${parts[@]}"; do
    start=$SECONDS
    if "run_$part"; then verdict=ok; else verdict=FAILED failed=1; fi
    echo "$part: $verdict, $((SECONDS - start)) s"
    [ "$verdict" = ok ] || grep -hE 'FAILED|error:|Failure|ERROR SUMMARY' "$out/$part"*.txt 2>/dev/null | head -20
done | tee "$out/summary.txt"
! grep -q FAILED "$out/summary.txt"
