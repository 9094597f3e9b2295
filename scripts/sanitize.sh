#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers and runs the fast tests under them.
# With "thread" as argument: the thread sanitizer instead. Works from any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
need_packages "${build_packages[@]}" "${test_packages[@]}"
preset=asan
[ "${1:-}" = thread ] && preset=tsan
say "Building (preset $preset)"
cmake --preset "$preset"
cmake --build --preset "$preset"
say "Running the fast tests"
ctest --preset "$preset" -L fast -j "$(nproc)"
