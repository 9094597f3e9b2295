#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS [TARGET...]]: builds the fuzz targets with Clang and runs each for SECONDS
# (60). Inputs that crash, hang or use too much memory are left in build/fuzz/findings; one that is
# fixed belongs in tests/fuzz/corpus/TARGET, where the tests replay it. Works from any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
seconds=${1:-60}
shift || true
need_packages "${build_packages[@]}" clang libclang-rt-14-dev
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi

say "Building (preset fuzz): ${targets[*]}"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}"

failed=()
mkdir -p build/fuzz/findings
for target in "${targets[@]}"; do
    say "$target for $seconds s"
    work=build/fuzz/work/$target  # grows from run to run; the committed seeds stay as they are
    mkdir -p "$work"
    "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
        "$work" "tests/fuzz/corpus/$target" 2>"$work.log" || failed+=("$target")
    grep -E '^(SUMMARY|stat::number_of_executed_units|stat::peak_rss_mb)|check failed|ERROR:|Test unit written' "$work.log" || true
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "error: these found something (logs in build/fuzz/work): ${failed[*]}" >&2
    exit 1
fi
say "Nothing found"
