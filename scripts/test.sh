#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs every test. Works from any folder.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
need_packages "${build_packages[@]}" "${test_packages[@]}"
say "Building (preset dev: optimised, warnings are errors)"
cmake --preset dev
cmake --build --preset dev
# Clients that drive the server. Without a package registry those tests are skipped and say so.
venv=build/test-venv
if ! cmp -s tests/server/requirements.txt "$venv/requirements.txt"; then
    say "Installing the clients of the server's tests into $venv"
    if python3 -m venv --clear "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check \
            --require-hashes --only-binary :all: -r tests/server/requirements.txt; then
        cp tests/server/requirements.txt "$venv/"
    else
        echo "warning: the clients could not be installed; tests of the server are skipped" >&2
        rm -rf "$venv"
    fi
fi
# A browser for the chat page, where the package is to be had.
(need_packages chromium) || echo "warning: chromium could not be installed; the page is not tested" >&2
say "Running every test"
ctest --preset dev -j "$(nproc)"
