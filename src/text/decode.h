#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_reader.h"

namespace exl3::text {

struct DecodeMode {
    bool continues = false;  ///< text stands before the first token, so it keeps its leading space
    bool raw_bytes = false;  ///< invalid UTF-8 passes as it is
};

/// A running decoder: tokens go in, text comes out as soon as nothing later can change it.
class DecodeStage {
public:
    DecodeStage() = default;
    virtual ~DecodeStage() = default;
    DecodeStage(const DecodeStage&) = delete;
    DecodeStage& operator=(const DecodeStage&) = delete;
    /// A token, or with last = false a part of one.
    virtual void push(std::string_view text, bool last) = 0;
    /// No token follows.
    virtual void finish() = 0;
};

/// One step of the decoder, as the file describes it. Const and thread-safe.
class DecodeStep {
public:
    DecodeStep() = default;
    virtual ~DecodeStep() = default;
    DecodeStep(const DecodeStep&) = delete;
    DecodeStep& operator=(const DecodeStep&) = delete;
    virtual std::unique_ptr<DecodeStage> start(DecodeMode mode, DecodeStage& next) const = 0;
};

/// The "decoder" of tokenizer.json.
class Decoder {
public:
    /// Without steps, tokens are joined by spaces.
    Decoder() = default;
    explicit Decoder(std::vector<std::unique_ptr<DecodeStep>> steps)
        : steps_(std::move(steps)), joins_with_spaces_(false) {}
    static Decoder load(const JsonNode& node);

    /// A running copy of all steps that appends to `out`, which must outlive it.
    class Run {
    public:
        Run(const Decoder& decoder, DecodeMode mode, std::string& out);
        void push(std::string_view token) { stages_.back()->push(token, true); }
        void finish() { stages_.back()->finish(); }

    private:
        std::vector<std::unique_ptr<DecodeStage>> stages_;  // last step first
    };

private:
    friend class Run;
    std::vector<std::unique_ptr<DecodeStep>> steps_;
    bool joins_with_spaces_ = true;
};

/// The steps of the usual SentencePiece files: marks to spaces, <0xHH> to bytes, one leading space
/// dropped if `strip_space`.
Decoder sentencepiece_decoder(bool strip_space);

}  // namespace exl3::text
