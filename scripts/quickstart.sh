#!/usr/bin/env bash
# From a fresh clone to a story: installs what is missing, builds the program, converts the bundled
# model to EXL3 at 4 bits per weight and lets it write. What is already done is not done again.
# Works from any folder, as root or through sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh

need_packages "${build_packages[@]}"

say "Building exl3 (release) into build/release/bin/exl3"
gpu=OFF  # compiling kernels takes a while, and pays where there is a GPU
command -v nvidia-smi >/dev/null && gpu=AUTO
[ -f build/release/build.ninja ] || cmake --preset release -DEXL3_GPU=$gpu
cmake --build --preset release

model=build/quickstart/tales-9m-4.0bpw
if [ -f "$model/config.json" ]; then
    say "The converted model is already there: $model"
else
    say "Converting models/tales-9m to EXL3, 4 bits per weight, into $model"
    mkdir -p build/quickstart
    # Fewer calibration rows than the default: enough for a model of this size, and quick on 2 cores.
    build/release/bin/exl3 quantize -i models/tales-9m -o "$model" -b 4 --cal-rows 64 --cal-cols 512
fi

prompt="Once upon a time there was a little fox who"
say "A story (exl3 run -m $model -p \"$prompt\")"
printf '%s' "$prompt"
build/release/bin/exl3 run -m "$model" --raw -n 200 --seed "${SEED:-7}" --temperature 0.8 --top-p 0.95 -p "$prompt"
printf '\n'
say "Done. Next: build/release/bin/exl3 --help"
