// Assigns a device, and some of its multiprocessors, to each rank.
#pragma once

#include <cstdint>
#include <vector>

namespace bubblescope::exec {

/// How ranks on one device share it.
enum class Share : std::uint8_t {
  kGreen,    ///< each has a partition of the multiprocessors (a green context)
  kStreams,  ///< all compete for all multiprocessors
};

/// The properties of a device that decide how it is split.
struct DeviceSize {
  std::int32_t multiprocessors = 0;
  std::int32_t capability = 90;  ///< 90 for 9.0
};

struct RankPlace {
  std::int32_t device = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t partition = 0;  ///< index on its device
  bool has_partition = false;  ///< false: all multiprocessors, shared or not

  bool operator==(const RankPlace&) const = default;
};

/// If there are fewer devices than ranks, neighbouring ranks share a device; a rank that is alone
/// has the whole device. The partitions of a device have the same size, the largest that the
/// hardware allows: a multiple of 8 on compute capability 9.0 and later, so that 132
/// multiprocessors become 4 x 32 or 8 x 16. Throws Error if a rank would get none.
std::vector<RankPlace> place_ranks(const std::vector<DeviceSize>& devices, std::int32_t ranks,
                                   Share share);

/// The multiprocessors of a partition must be a multiple of this on the given compute capability.
std::int32_t partition_grain(std::int32_t capability);

}  // namespace bubblescope::exec
