// A call table in which every call succeeds and does nothing.
#include "exec/gpu/host/counting_gpu.h"

namespace bubblescope::exec {

namespace {

/// All handles and all memory point here.
char nothing = 0;

BubblescopeGpu make_calls() {
  BubblescopeGpu calls{};
  calls.count_devices = [](std::int32_t* count) -> const char* {
    *count = 1;
    return nullptr;
  };
  calls.describe_device = [](std::int32_t, BubblescopeDevice* description) -> const char* {
    *description = {"none", 1, 90, 13000, 0, ""};
    return nullptr;
  };
  calls.allocate = [](std::int32_t, std::size_t, void** memory) -> const char* {
    *memory = &nothing;
    return nullptr;
  };
  calls.release_memory = [](void*) {};
  calls.copy = [](void*, const void*, std::size_t, void*) -> const char* { return nullptr; };
  calls.clear = [](void*, std::size_t, void*) -> const char* { return nullptr; };
  calls.launch = [](const KernelLaunch*, void*) -> const char* { return nullptr; };
  calls.create_blas_handle = [](std::int32_t, std::int32_t, std::int32_t,
                                void** handle) -> const char* {
    *handle = &nothing;
    return nullptr;
  };
  calls.release_blas_handle = [](void*) {};
  calls.blas_version = [](void*) { return std::int64_t{0}; };
  calls.multiply = [](void*, const BubblescopeGemm*, void*) -> const char* { return nullptr; };
  calls.can_multiply = [](void*, const BubblescopeGemm*, std::int32_t* can) -> const char* {
    *can = 1;
    return nullptr;
  };
  return calls;
}

}  // namespace

const BubblescopeGpu& counting_gpu_calls() {
  static const BubblescopeGpu calls = make_calls();
  return calls;
}

}  // namespace bubblescope::exec
