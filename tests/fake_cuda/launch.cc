// Registers kernels, as compiled CUDA code does when it is loaded, and launches them.
#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/fake_cuda/devices.h"
#include "tests/fake_cuda/kernels.h"
#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

namespace {

constexpr unsigned int kMaxThreads = 1024;  // per block
constexpr unsigned int kWarp = 32;
constexpr int kSharedUnasked = 48 << 10;  // bytes that a launch may use
constexpr int kMaxShared = 227 << 10;     // of a block

struct Call {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Call>& calls() {
  thread_local std::vector<Call> pushed;
  return pushed;
}

/// [host function of the kernel]: its signature.
std::map<const void*, std::string>& kernels() {
  static auto& instance = *new std::map<const void*, std::string>;
  return instance;
}

/// [kernel, device]: the shared memory that launches were allowed to use.
std::map<std::pair<const void*, std::int32_t>, int>& allowed_shared() {
  static auto& instance = *new std::map<std::pair<const void*, std::int32_t>, int>;
  return instance;
}

/// Whether a launch may use so much shared memory on the current device.
bool is_allowed(const void* kernel, std::size_t shared_bytes) {
  const auto at = allowed_shared().find({kernel, current_device()});
  const int allowed = at == allowed_shared().end() ? kSharedUnasked : at->second;
  return shared_bytes <= static_cast<std::size_t>(std::max(allowed, kSharedUnasked));
}

/// Returns "norm_kernel<float>(float*, int)" for "_ZN11bubblescope4exec11norm_kernelIfEEvPT_i".
std::string signature_of(const char* mangled) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr), &std::free);
  std::string signature = name != nullptr ? name.get() : mangled;
  for (const std::string prefix : {"void ", "bubblescope::exec::", "(anonymous namespace)::"})
    if (signature.rfind(prefix, 0) == 0) signature.erase(0, prefix.size());
  return signature;
}

/// CUDA loads a kernel to a device at its first launch there, which may wait for all work of the
/// device. Here it always waits.
void load(const void* kernel, std::int32_t device) {
  static auto& loaded = *new std::set<std::pair<const void*, std::int32_t>>;
  if (loaded.emplace(kernel, device).second)
    await_device(device, "the first launch of " + kernels().at(kernel));
}

cudaError_t launch(const void* kernel, const Call& asked, void** arguments) {
  const auto at = kernels().find(kernel);
  if (at == kernels().end()) return cudaErrorInvalidDeviceFunction;
  Stream& stream = stream_of(asked.stream, at->second.c_str());
  if (asked.grid.x == 0 || asked.block.x == 0 || asked.block.x > kMaxThreads ||
      asked.grid.y * asked.grid.z * asked.block.y * asked.block.z != 1)
    return spoil(stream, cudaErrorInvalidConfiguration);
  if (!is_allowed(kernel, asked.shared_bytes)) return spoil(stream, cudaErrorInvalidValue);
  if (stream.device != current_device()) return spoil(stream, cudaErrorInvalidResourceHandle);
  load(kernel, stream.device);
  put(stream, find_kernel(at->second)(
                  arguments, {asked.grid.x, asked.block.x, stream.device, asked.shared_bytes}));
  return cudaSuccess;
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* on_host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  kernels()[on_host] = signature_of(name);
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                         CUstream_st* stream) {
  ::calls().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  const Call call = ::calls().back();
  ::calls().pop_back();
  *grid = call.grid;
  *block = call.block;
  *shared_bytes = call.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = call.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* on_host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(on_host));
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&] {
    if (kernels().count(kernel) == 0) return cudaErrorInvalidDeviceFunction;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > kMaxShared)
      return cudaErrorInvalidValue;
    allowed_shared()[{kernel, current_device()}] = value;
    return cudaSuccess;
  });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return call("cudaLaunchKernel", [&] {
    return launch(kernel, {grid, block, shared_bytes, stream}, arguments);
  });
}

}  // extern "C"
