// Parameters that are shared out among copies of a pipeline: each copy owns a part of every matrix,
// and has the others' only between UNSHARD and RESHARD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// Neighbouring entries of a matrix.
struct Shard {
  std::size_t begin = 0;
  std::size_t count = 0;

  std::size_t end() const { return begin + count; }
};

/// What one of `owners` has of so many entries; the first ones have one more where they cannot have
/// the same.
Shard shard_of(std::size_t entries, std::int32_t owner, std::int32_t owners);

/// Per stage, whether the schedule gathers its parameters. Where pipelines run in both directions,
/// a rank holds its stages whole.
std::vector<bool> find_gathered(const Schedule& schedule);

}  // namespace bubblescope::exec
