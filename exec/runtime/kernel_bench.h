// The kernels of one device, to be timed alone for a calibration.
#pragma once

#include <cstdint>
#include <string>

#include "sim/ir/units.h"
#include "sim/model/measured_gemms.h"

namespace bubblescope::exec {

/// Runs kernels back to back, and returns the time of all. Throws Error (Fault::kMachine).
class KernelBench {
 public:
  virtual ~KernelBench() = default;

  /// GEMMs as frameworks run them: weights stored as outputs x inputs, W added to its target.
  virtual Nanos run_gemm(const GemmShape& shape, std::int64_t times) = 0;
  /// Copies from the device's memory to itself.
  virtual Nanos run_copy(Bytes bytes, std::int64_t times) = 0;

  std::string device;  ///< its description
  Bytes memory = 0;    ///< of the device; 0: that of the host, which others use as well
};

}  // namespace bubblescope::exec
