// Finding and opening the NCCL module.
#include <dlfcn.h>

#include <filesystem>

#include "exec/module_file.h"
#include "exec/nccl/nccl.h"
#include "sim/ir/error.h"

namespace bubblescope {

const BubblescopeNccl& open_nccl(const std::string& module_file) {
  if (!std::filesystem::exists(module_file))
    throw Error(Fault::kMachine, "the backend nccl needs " + module_file +
                                     ", which is not there: install NCCL and the CUDA toolkit, and "
                                     "build with the preset cuda");
  void* const module = dlopen(module_file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw Error(Fault::kMachine,
                std::string("the backend nccl cannot be loaded; is libnccl.so.2 in "
                            "LD_LIBRARY_PATH? (") +
                    dlerror() + ")");
  auto* const open =
      reinterpret_cast<decltype(bubblescope_open_nccl)*>(dlsym(module, "bubblescope_open_nccl"));
  if (open == nullptr)
    throw Error(
        Fault::kMachine,
        module_file + " has no bubblescope_open_nccl; build and install both from one source");
  const char* error = nullptr;
  const BubblescopeNccl* const calls = open(&error);
  if (calls == nullptr)
    throw Error(Fault::kMachine, std::string("the backend nccl cannot run here: ") + error);
  return *calls;
}

const BubblescopeNccl& open_nccl() {
  static const std::string file = find_module_file(BUBBLESCOPE_NCCL_MODULE);
  static const BubblescopeNccl& calls = open_nccl(file);
  return calls;
}

}  // namespace bubblescope
