#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs every test. Works from any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
need_packages "${build_packages[@]}" "${test_packages[@]}"
say "Building (preset dev: optimised, warnings are errors)"
cmake --preset dev
cmake --build --preset dev
say "Running every test"
ctest --preset dev -j "$(nproc)"
