// Assigns ranks to devices and splits the devices.
#include "exec/gpu/host/place_ranks.h"

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

std::int32_t partition_size(const DeviceSize& device, std::int32_t parts) {
  const std::int32_t grain = partition_grain(device.capability);
  const std::int32_t size = device.multiprocessors / parts / grain * grain;
  if (size == 0)
    throw Error("a device of " + counted(device.multiprocessors, "multiprocessor") +
                " has at most " + counted(device.multiprocessors / grain, "partition") + ", not " +
                std::to_string(parts) + "; use fewer ranks, or `share` streams");
  return size;
}

}  // namespace

std::int32_t partition_grain(std::int32_t capability) {
  if (capability >= 90) return 8;
  return capability >= 80 ? 4 : 2;
}

std::vector<RankPlace> place_ranks(const std::vector<DeviceSize>& devices, std::int32_t ranks,
                                   Share share) {
  if (devices.empty())
    throw Error(Fault::kMachine, "this machine has no CUDA device; use `backend` cpu");
  const auto count = static_cast<std::int64_t>(devices.size());
  std::vector<RankPlace> places;
  std::vector<std::int32_t> sharing(devices.size(), 0);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    RankPlace place;
    place.device = count >= ranks ? rank : static_cast<std::int32_t>(rank * count / ranks);
    place.partition = sharing[static_cast<std::size_t>(place.device)]++;
    places.push_back(place);
  }
  for (RankPlace& place : places) {
    const auto device = static_cast<std::size_t>(place.device);
    place.has_partition = share == Share::kGreen && sharing[device] > 1;
    place.multiprocessors = place.has_partition ? partition_size(devices[device], sharing[device])
                                                : devices[device].multiprocessors;
    if (!place.has_partition) place.partition = 0;
  }
  return places;
}

}  // namespace bubblescope::exec
