// Which device, and how many of its multiprocessors, each rank gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope {

/// How ranks on one device share it.
enum class Share : std::uint8_t {
  kGreen,    ///< a partition of the multiprocessors each (a green context)
  kStreams,  ///< they compete for all of them
};

/// What must be known of a device to share it out.
struct DeviceSize {
  std::int32_t multiprocessors = 0;
  std::int32_t capability = 90;  ///< 90 for 9.0
};

struct RankPlace {
  std::int32_t device = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t partition = 0;  ///< of its device
  bool has_partition = false;  ///< false: the whole device, shared or not

  bool operator==(const RankPlace&) const = default;
};

/// Neighbouring ranks share a device where there are fewer devices than ranks; a rank alone has its
/// device whole. Partitions of a device have the same size, the largest that the hardware allows: a
/// multiple of 8 on compute capability 9.0 and later, so that 132 multiprocessors are 4 x 32 or
/// 8 x 16. Throws Error where a rank would get none.
std::vector<RankPlace> place_ranks(const std::vector<DeviceSize>& devices, std::int32_t ranks,
                                   Share share);

/// The finest cut of a device of this compute capability.
std::int32_t partition_grain(std::int32_t capability);

}  // namespace bubblescope
