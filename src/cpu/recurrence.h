#pragma once
#include "core/device.h"
#include "ops/recurrence.h"
#include "ops/slot_rows.h"

namespace exl3::cpu {

/// Channels that causal_conv takes through all rows at a time.
inline constexpr int64_t kConvChannels = 128;

/// Rows of a chunk of the chunked recurrence. The work beyond the state's grows with it, the state
/// is read and written once per chunk.
inline constexpr int64_t kRecurrenceChunk = 32;

/// Runs heads [head, head + count) of a sequence, which share a head of q and k.
using RecurrenceKernel = void (*)(const RecurrenceArgs& a, const SlotRows& rows, int64_t head,
                                  int64_t count, float* scratch);

/// Token after token: for decoding.
RecurrenceKernel recurrence_steps(const Stream& s);
int64_t recurrence_steps_scratch(const RecurrenceArgs& a);  ///< floats

/// Chunk after chunk, in matrix products: for prompts.
RecurrenceKernel recurrence_chunks(const Stream& s);
int64_t recurrence_chunks_scratch(const RecurrenceArgs& a, int64_t heads);  ///< floats

/// Runs every head of every sequence with the kernel for its number of rows, those below
/// `chunks_from` token after token. For the benchmark, which compares the two.
void run_recurrence(Stream& s, const RecurrenceArgs& a, int64_t chunks_from);

}  // namespace exl3::cpu
