// Finding and opening the CUDA module.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "exec/gpu/gpu.h"
#include "exec/module_file.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// Where BUBBLESCOPE_CUDA_MODULE says: a simulated device, for rehearsals.
std::string find_module() {
  const char* const file = std::getenv("BUBBLESCOPE_CUDA_MODULE");
  if (file != nullptr && *file != '\0') return file;
  return find_module_file(BUBBLESCOPE_CUDA_MODULE);
}

}  // namespace

const BubblescopeGpu& open_gpu(const std::string& module_file) {
  if (!std::filesystem::exists(module_file))
    throw Error(Fault::kMachine, "the cuda backend needs " + module_file +
                                     ", which is not there: install the CUDA toolkit and build "
                                     "with the preset cuda");
  // Lanes need queues of their own, and the driver reads this once, when it starts.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  void* const module = dlopen(module_file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw Error(Fault::kMachine, std::string("the cuda backend cannot be loaded: ") + dlerror());
  auto* const open =
      reinterpret_cast<decltype(bubblescope_open_gpu)*>(dlsym(module, "bubblescope_open_gpu"));
  if (open == nullptr)
    throw Error(
        Fault::kMachine,
        module_file + " has no bubblescope_open_gpu; build and install both from one source");
  const char* error = nullptr;
  const BubblescopeGpu* const calls = open(&error);
  if (calls == nullptr)
    throw Error(Fault::kMachine, std::string("the cuda backend cannot run here: ") + error);
  return *calls;
}

const BubblescopeGpu& open_gpu() {
  static const std::string file = find_module();
  static const BubblescopeGpu& calls = open_gpu(file);
  return calls;
}

}  // namespace bubblescope
