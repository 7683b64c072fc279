// calibrate --gpu: measures a device's GEMMs and copies, and writes a file for --gpu.
#pragma once

#include <string>

namespace bubblescope::tools {

struct CalibrateGpuRequest {
  std::string like;     ///< the preset that has what is not measured: links, attention, the peak
  std::string backend;  ///< "cuda", or one whose work runs on the host
  double seconds = 60;  ///< about how long to measure
};

/// Returns the file's content. Throws Error.
std::string calibrate_gpu(const CalibrateGpuRequest& request);

}  // namespace bubblescope::tools
