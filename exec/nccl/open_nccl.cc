// Loads the NCCL module.
#include "exec/nccl/nccl.h"
#include "exec/runtime/module.h"

namespace bubblescope::exec {

const BubblescopeNccl& open_nccl(const std::string& module_file) {
  return open_table<BubblescopeNccl>(
      {module_file, "the backend nccl",
       "install NCCL and the CUDA toolkit, and build with the preset cuda",
       " cannot be loaded; is libnccl.so.2 in LD_LIBRARY_PATH?"},
      "bubblescope_open_nccl");
}

const BubblescopeNccl& open_nccl() {
  static const std::string file = find_module(BUBBLESCOPE_NCCL_MODULE);
  static const BubblescopeNccl& calls = open_nccl(file);
  return calls;
}

}  // namespace bubblescope::exec
