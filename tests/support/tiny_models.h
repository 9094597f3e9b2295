#pragma once
#include <cstdlib>

#include "support/golden.h"

namespace exl3::test {

/// The folder of one of the golden tiny models, made when it is first asked for and gone with the
/// process; empty where there is no golden data.
inline std::filesystem::path tiny_model(const std::string& name) {
    static const TempDir dir;
    const std::filesystem::path script = golden_dir() / "tiny-models/make_tiny.py",
                                folder = dir.path() / name;
    if (!std::filesystem::exists(script)) return {};
    if (std::filesystem::exists(folder)) return folder;
    const std::string command = "/usr/bin/python3 " + script.string() + " " + dir.path().string() +
                                " " + name + " > /dev/null 2>&1";
    return std::system(command.c_str()) == 0 ? folder : std::filesystem::path();
}

}  // namespace exl3::test
