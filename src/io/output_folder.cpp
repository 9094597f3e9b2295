#include "io/output_folder.h"

#include "base/error.h"

namespace exl3 {
namespace fs = std::filesystem;

OutputFolder::OutputFolder(fs::path final) : final_(std::move(final)) {
    // "out/" names the same folder as "out", but has no last part to extend.
    if (!final_.has_filename()) final_ = final_.parent_path();
    std::error_code problem;
    if (fs::exists(final_, problem) &&
        !(fs::is_directory(final_, problem) && fs::is_empty(final_, problem)))
        throw Error(Errc::invalid_argument, {final_.string(), {}, {}},
                    "exists already; name another output or remove it");
    partial_ = final_;
    partial_ += ".partial";
    fs::remove_all(partial_, problem);
    problem.clear();
    fs::create_directories(partial_, problem);
    if (problem)
        throw Error(Errc::io, {partial_.string(), {}, {}},
                    "cannot make the folder: " + problem.message());
}

OutputFolder::~OutputFolder() {
    std::error_code ignored;
    if (!done_) fs::remove_all(partial_, ignored);
}

void OutputFolder::commit() {
    std::error_code problem;
    fs::rename(partial_, final_, problem);
    if (problem)
        throw Error(Errc::io, {final_.string(), {}, {}},
                    "cannot rename the finished folder: " + problem.message());
    done_ = true;
}

}  // namespace exl3
