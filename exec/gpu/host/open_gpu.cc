// Loads the CUDA module.
#include <cstdlib>

#include "exec/gpu/host/gpu.h"
#include "exec/gpu/host/gpu_environment.h"
#include "exec/runtime/module.h"

namespace bubblescope::exec {

namespace {

/// The module named by BUBBLESCOPE_CUDA_MODULE, such as a simulated device, or else our own.
std::string find_gpu_module() {
  const char* const file = std::getenv("BUBBLESCOPE_CUDA_MODULE");
  if (file != nullptr && *file != '\0') return file;
  return find_module(BUBBLESCOPE_CUDA_MODULE);
}

}  // namespace

const BubblescopeGpu& open_gpu(const std::string& module_file) {
  set_queues();  // the driver reads this once, when it starts
  return open_table<BubblescopeGpu>(
      {module_file, "the cuda backend", "install the CUDA toolkit and build with the preset cuda",
       " cannot be loaded"},
      "bubblescope_open_gpu");
}

const BubblescopeGpu& open_gpu() {
  static const std::string file = find_gpu_module();
  static const BubblescopeGpu& calls = open_gpu(file);
  return calls;
}

}  // namespace bubblescope::exec
