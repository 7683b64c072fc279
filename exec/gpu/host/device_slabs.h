// Device memory for many matrices from few allocations, which take the driver long. Pieces are
// never released alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_matrix.h"

namespace bubblescope::exec {

class DeviceSlabs {
 public:
  explicit DeviceSlabs(const GpuMachine& machine);

  /// Returns the shape with memory of the device, aligned as a new allocation is. Throws Error if
  /// the device is out of memory.
  GpuMatrix place(std::int32_t device, GpuMatrix shape);

  /// Fills all pieces with zeros, and waits until that is done.
  void clear() const;

 private:
  struct Slab {
    GpuHandle memory;
    std::size_t bytes = 0;
    std::size_t used = 0;
  };

  const GpuMachine& machine_;
  std::vector<std::vector<Slab>> slabs_;  ///< [device]
};

}  // namespace bubblescope::exec
