#include "text/protobuf.h"

#include <fmt/format.h>

#include <bit>

#include "base/error.h"

namespace exl3::text {

void ProtoReader::fail(std::string_view what) const {
    throw Error(Errc::invalid_file, {.file = file_, .offset = base_ + at_}, what);
}

uint64_t ProtoReader::read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (at_ >= bytes_.size()) fail("message ends inside a number");
        const auto byte = static_cast<uint8_t>(bytes_[at_++]);
        value |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) return value;
    }
    fail("a number of more than 10 bytes");
}

std::string_view ProtoReader::take(uint64_t n) {
    if (n > bytes_.size() - at_)
        fail(fmt::format("needs {} bytes, message ends after {}", n, bytes_.size() - at_));
    const std::string_view taken = bytes_.substr(at_, n);
    at_ += n;
    return taken;
}

bool ProtoReader::next() {
    if (unread_) {
        switch (wire_) {
            case Wire::varint: read_varint(); break;
            case Wire::fixed64: take(8); break;
            case Wire::bytes: take(read_varint()); break;
            case Wire::fixed32: take(4); break;
        }
        unread_ = false;
    }
    if (at_ == bytes_.size()) return false;
    const uint64_t tag = read_varint();
    const uint64_t wire = tag & 7;
    if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF || (wire > 2 && wire != 5))
        fail(fmt::format("field {} of wire type {} is no protobuf field", tag >> 3, wire));
    field_ = static_cast<uint32_t>(tag >> 3);
    wire_ = static_cast<Wire>(wire);
    unread_ = true;
    return true;
}

void ProtoReader::need(Wire wire, const char* what) const {
    if (wire_ != wire) fail(fmt::format("field {} is not {}", field_, what));
}

uint64_t ProtoReader::varint() {
    need(Wire::varint, "an integer");
    unread_ = false;
    return read_varint();
}

float ProtoReader::float32() {
    need(Wire::fixed32, "a float");
    unread_ = false;
    const std::string_view b = take(4);
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) bits |= uint32_t{static_cast<uint8_t>(b[i])} << 8 * i;
    return std::bit_cast<float>(bits);
}

std::string_view ProtoReader::bytes() {
    need(Wire::bytes, "a string");
    unread_ = false;
    return take(read_varint());
}

ProtoReader ProtoReader::message() {
    const std::string_view inner = bytes();
    return {inner, file_, base_ + at_ - inner.size()};
}

}  // namespace exl3::text
