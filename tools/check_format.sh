#!/usr/bin/env bash
# Fails when a source file is not as .clang-format wants it. Needs clang-format 14.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' 'bench/*.cpp' | xargs clang-format --dry-run -Werror
