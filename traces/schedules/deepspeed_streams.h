// Reads DeepSpeed's instruction streams: which micro-batch an instruction is of follows from its
// buffer, as the engine's does.
//
//   LD, RA    put a micro-batch into a buffer: the next one that is loaded, or that the previous
//             rank has sent
//   F, SA     are of what the buffer holds
//   RG, B, SG likewise; the n-th gradient that arrives is the n-th that the next rank sends
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// The instructions of every rank that are ops or messages. Throws Error, with the place, for
/// words that are not instructions, and where the engine would compute on another micro-batch, or
/// on none.
std::vector<RankOrder> read_deepspeed_streams(std::string_view text, const std::string& file);

}  // namespace bubblescope::traces
