// Recognizes collectives by their names, however these are spelled: all-gather, reduce_scatter,
// AllReduce.
#pragma once

#include <cstdint>
#include <string_view>

namespace bubblescope::traces {

/// The operation of a collective.
enum class CollectiveKind : std::uint8_t {
  kOther,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
};

/// Finds the operation by the name of a kernel ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)") or
/// of an annotation ("gloo:all_reduce").
CollectiveKind classify_collective(std::string_view name);

/// Returns a name such as "all-reduce"; "other collectives" for kOther.
std::string_view name_of(CollectiveKind kind);

/// Whether a name says that it is a collective, be its operation known or not.
bool is_named_like_collective(std::string_view name);

}  // namespace bubblescope::traces
