// Writes the descriptions of devices that traces/costs/gpu_file.h reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/gpu.h"

namespace bubblescope::traces {

/// The measurements of a device. The rest comes from a preset.
struct MeasuredGpu {
  std::string like;         ///< the preset's name
  std::string measured_on;  ///< a description of the device, for people
  std::optional<double> peak_flops = {};
  double reachable_flops = 1;
  std::optional<Bytes> memory = {};
  double memory_bytes_per_second = 1;
  std::optional<Link> host = {};
  std::vector<MeasuredGemm> gemms;
};

std::string write_gpu(const MeasuredGpu& gpu);

}  // namespace bubblescope::traces
