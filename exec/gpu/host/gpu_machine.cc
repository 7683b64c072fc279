// Assigns devices to ranks.
#include "exec/gpu/host/gpu_machine.h"

#include <algorithm>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

std::vector<DeviceSize> sizes_of(const std::vector<BubblescopeDevice>& devices) {
  std::vector<DeviceSize> sizes;
  for (const BubblescopeDevice& device : devices)
    sizes.push_back({device.multiprocessors, device.capability});
  return sizes;
}

}  // namespace

GpuMachine::GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, Share share)
    : gpu_(calls),
      devices_(gpu_.devices()),
      places_(place_ranks(sizes_of(devices_), ranks, share)),
      partitions_(places_.size()) {
  for (std::size_t rank = 0; rank < places_.size(); ++rank) {
    const RankPlace& place = places_[rank];
    if (!place.has_partition || place.partition != 0) continue;
    const auto parts = static_cast<std::int32_t>(
        std::count_if(places_.begin(), places_.end(),
                      [&](const RankPlace& other) { return other.device == place.device; }));
    fit_partitions(rank, parts);
    std::vector<GpuHandle> handles = gpu_.split(place.device, place.multiprocessors, parts);
    for (std::size_t part = 0; part < handles.size(); ++part)
      partitions_[rank + part] = std::move(handles[part]);  // neighbouring ranks share a device
  }
  for (std::int32_t from = 0; from < device_count(); ++from)
    for (std::int32_t to = 0; to < device_count(); ++to)
      if (from != to) gpu_.link_devices(from, to);
}

/// Multiprocessors lie in clusters of unequal sizes, so fewer partitions may exist than their
/// number allows. Takes smaller ones then.
void GpuMachine::fit_partitions(std::size_t first_rank, std::int32_t parts) {
  const std::int32_t device = places_[first_rank].device;
  const std::int32_t planned = places_[first_rank].multiprocessors;
  const std::int32_t grain = partition_grain(devices_[static_cast<std::size_t>(device)].capability);
  std::int32_t size = planned;
  while (size > 0 && gpu_.count_partitions(device, size) < parts) size -= grain;
  if (size <= 0)
    throw Error(Fault::kMachine, "the driver cannot split device " + std::to_string(device) +
                                     " into " + counted(parts, "partition") +
                                     " of its multiprocessors; use fewer ranks, or "
                                     "`share` streams");
  if (size == planned) return;
  planned_size_ = planned;
  for (RankPlace& place : places_)
    if (place.device == device) place.multiprocessors = size;
}

GpuMachine::GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, const OwnRank& own)
    : gpu_(calls, own.device),
      devices_(gpu_.devices()),
      partitions_(static_cast<std::size_t>(ranks)),
      here_(own.rank) {
  devices_.resize(1);
  places_.assign(partitions_.size(), RankPlace{0, devices_[0].multiprocessors});
}

void GpuMachine::await() const {
  for (std::int32_t device = 0; device < device_count(); ++device) gpu_.await_device(device);
}

std::string GpuMachine::describe() const {
  std::string text = describe_devices(devices_) + "; " + counted(ranks(), "rank") + ", ";
  if (here_) return text + "one process and device each";
  const RankPlace& place = places_[0];
  if (place.has_partition)
    return text + counted(place.multiprocessors, "multiprocessor") + " each (green contexts" +
           (planned_size_ > 0
                ? "; the driver has too few groups of " + std::to_string(planned_size_)
                : "") +
           ")";
  const bool alone = device_count() == ranks();
  return text + (alone ? "a device each" : "sharing all multiprocessors");
}

std::vector<std::string> GpuMachine::buses() const {
  std::vector<std::string> buses;
  for (std::int32_t device = 0; device < device_count(); ++device)
    if (const char* const bus = devices_[static_cast<std::size_t>(device)].bus; *bus != '\0')
      buses.emplace_back(bus);
  return buses;
}

}  // namespace bubblescope::exec
