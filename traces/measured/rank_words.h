// Finds the numbers of ranks in the names of processes, threads and files, which people choose.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bubblescope::traces {

/// The number in a name.
struct NamedNumber {
  std::int32_t number = 0;
  bool is_rank = false;    ///< the name says that it is that of a rank: "pp rank[3] main"
  bool is_device = false;  ///< ... of a device, which may be counted on each host: "GPU 0"
};

/// "rank 3", "GPU:2", "stage_1"; else the only number of the name. nullopt where it has none or
/// several, and where it counts something else: "dp rank 1", "step 7", "chunk 0".
std::optional<NamedNumber> find_rank_number(std::string_view name);

/// Whether a name speaks of a part of a rank: "chunk 1", "stream 7".
bool names_part_of_rank(std::string_view name);

}  // namespace bubblescope::traces
