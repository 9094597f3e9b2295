#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace exl3::text {

/// Reads the fields of one protobuf message in order, as far as SentencePiece models need. Throws
/// Error{invalid_file} naming file and byte where the wire format is broken.
class ProtoReader {
public:
    /// @param base  where `bytes` begins in the file, for errors
    ProtoReader(std::string_view bytes, std::string file, uint64_t base = 0)
        : bytes_(bytes), file_(std::move(file)), base_(base) {}

    /// Moves to the next field; false at the end. What was not read of the last one is skipped.
    bool next();
    uint32_t field() const { return field_; }
    uint64_t varint();  ///< int32, int64, enum
    bool boolean() { return varint() != 0; }
    int32_t int32() { return static_cast<int32_t>(varint()); }
    float float32();
    std::string_view bytes();  ///< string, bytes
    ProtoReader message();     ///< an embedded message

private:
    enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
    [[noreturn]] void fail(std::string_view what) const;
    uint64_t read_varint();
    std::string_view take(uint64_t n);
    void need(Wire wire, const char* what) const;

    std::string_view bytes_;
    std::string file_;
    uint64_t base_;
    size_t at_ = 0;
    uint32_t field_ = 0;
    Wire wire_ = Wire::varint;
    bool unread_ = false;
};

}  // namespace exl3::text
