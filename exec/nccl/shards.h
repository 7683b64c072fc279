// Shards of parameters (FSDP): each replica of the pipeline owns a part of every matrix, and has
// the other parts only between UNSHARD and RESHARD.
//
//   7 entries, 3 owners:  owner 0 has 0..2, owner 1 has 3..4, owner 2 has 5..6
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// A range of a matrix's entries.
struct Shard {
  std::size_t begin = 0;
  std::size_t count = 0;

  std::size_t end() const { return begin + count; }
};

/// The shard of one of `owners`. If `entries` is not a multiple of `owners`, the first shards have
/// one entry more.
Shard shard_of(std::size_t entries, std::int32_t owner, std::int32_t owners);

/// Whether the schedule gathers each stage's parameters. In bidirectional schedules a rank holds
/// its stages whole.
std::vector<bool> find_gathered(const Schedule& schedule);

}  // namespace bubblescope::exec
