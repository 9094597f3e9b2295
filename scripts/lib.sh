# Shared by the scripts beside it: what to install and how to say what happens.
build_packages=(g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev
                libpcre2-dev libutf8proc-dev libedit-dev
                libboost1.81-dev libyaml-cpp-dev)
test_packages=(python3 python3-numpy python3-venv libgtest-dev xz-utils)

say() { printf '\n== %s\n' "$*"; }

# need_packages NAME...: installs the Debian packages that are missing, as root or through sudo.
need_packages() {
    local missing=() name root=()
    for name in "$@"; do
        dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    if ! command -v apt-get >/dev/null; then
        echo "error: these are missing and apt-get is not here to install them: ${missing[*]}" >&2
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "error: run as root or install sudo: apt-get install ${missing[*]}" >&2; exit 1; }
        root=(sudo)
    fi
    say "Installing ${missing[*]}"
    "${root[@]}" apt-get update -q >/dev/null
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}
