#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "api/template_traits.h"
#include "backends/backends.h"
#include "gen/generator.h"
#include "gen/model_defaults.h"
#include "server/config.h"
#include "server/output_constraint.h"

namespace exl3::server {

/// A model that answers: everything from tokenizer to generator. Shared by the requests it serves;
/// the last of them lets it go.
struct LoadedModel {
    /// Reads a folder. Throws Error naming what is wrong with it.
    LoadedModel(const std::filesystem::path& folder, const std::string& device,
                const DeviceOptions& device_options, const ServerConfig& config,
                const LoadProgress& progress);

    std::string id;  ///< name of the folder
    std::filesystem::path folder;
    int64_t created = 0;  ///< when it was loaded, seconds since 1970
    std::string fingerprint;
    double load_seconds = 0;
    int64_t cache_tokens = 0;
    std::unique_ptr<Device> device;
    Tokenizer tokenizer;
    ChatTemplates templates;
    api::TemplateTraits traits;
    std::vector<int32_t> ends;  ///< tokens that end an answer
    std::unique_ptr<Constraints> constraints;
    SamplerParams sampler;  ///< where requests are silent
    std::shared_ptr<const SamplerVocab> sampler_vocab;
    std::shared_ptr<const Model> model;
    std::unique_ptr<Generator> generator;
    std::string start_in_reasoning;  ///< "auto", "always" or "never"

    /// Whether the answer to a prompt begins inside reasoning.
    bool starts_in_reasoning(std::string_view prompt, const api::OutputSyntax& syntax) const;
};

/// Bits of keys and values: "FP16", "Q8", "Q6", "Q4" or "K,V". Throws Error{invalid_argument}.
std::pair<int, int> read_cache_mode(const std::string& text);

}  // namespace exl3::server
