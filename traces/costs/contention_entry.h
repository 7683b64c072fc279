// Contention in a cost file: how long ops take while other ranks of their device are busy.
//
//   {"ranks_per_device": 4, "message": {"latency": "9us", "contended": ["10us", "11us"]},
//    "stages": [{"forward": "1ms", "input_grad": "1ms", "weight_grad": "0.9ms",
//                "contended": {"forward": ["1.02ms", "1.05ms", "1.1ms"],    2, 3 and 4 ranks busy
//                              "input_grad": ["1.03ms"]}}]}                 2 or more
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/schedule.h"
#include "sim/model/contention.h"

namespace bubblescope::traces {

class JsonNode;
struct CostFile;

/// Durations by kind with 2, 3, ... ranks busy; empty for kinds that are not listed.
using ContentionEntry = std::array<std::vector<Nanos>, kComputeKinds>;

/// The keys of compute kinds in cost files, by kind.
inline constexpr std::array<const char*, kComputeKinds> kCostKeys{
    "forward", "backward", "input_grad", "weight_grad", "recompute"};

/// Reads a stage's "contended". Throws Error with the JSON pointer of the first fault.
ContentionEntry read_contention(const JsonNode& node);

/// Returns how a schedule's ranks slow each other; nullopt where the file says nothing about it.
/// Throws Error where an op is faster under contention than alone.
std::optional<Contention> contention(const CostFile& file, const Schedule& schedule);

}  // namespace bubblescope::traces
