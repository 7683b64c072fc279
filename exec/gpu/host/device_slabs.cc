// Allocates slabs of growing size.
#include "exec/gpu/host/device_slabs.h"

#include <algorithm>

namespace bubblescope::exec {

namespace {

constexpr std::size_t kAlignment = 256;  // that of cudaMalloc
constexpr std::size_t kMinSlab = std::size_t{1} << 20;
constexpr std::size_t kMaxSlab = std::size_t{256} << 20;

}  // namespace

DeviceSlabs::DeviceSlabs(const GpuMachine& machine)
    : machine_(machine), slabs_(static_cast<std::size_t>(machine.device_count())) {}

GpuMatrix DeviceSlabs::place(std::int32_t device, GpuMatrix shape) {
  std::vector<Slab>& slabs = slabs_[static_cast<std::size_t>(device)];
  const std::size_t bytes =
      (static_cast<std::size_t>(shape.bytes()) + kAlignment - 1) / kAlignment * kAlignment;
  if (slabs.empty() || slabs.back().used + bytes > slabs.back().bytes) {
    const std::size_t next = slabs.empty() ? kMinSlab : std::min(2 * slabs.back().bytes, kMaxSlab);
    const std::size_t size = std::max(bytes, next);
    slabs.push_back({machine_.gpu().allocate(device, size), size, 0});
  }
  Slab& slab = slabs.back();
  shape.data = static_cast<char*>(slab.memory.get()) + slab.used;
  slab.used += bytes;
  return shape;
}

void DeviceSlabs::clear() const {
  for (std::int32_t device = 0; device < machine_.device_count(); ++device) {
    const GpuHandle stream = machine_.gpu().create_stream(device, nullptr);
    for (const Slab& slab : slabs_[static_cast<std::size_t>(device)])
      machine_.gpu().clear(slab.memory.get(), slab.used, stream.get());
    machine_.gpu().await_device(device);
  }
}

}  // namespace bubblescope::exec
