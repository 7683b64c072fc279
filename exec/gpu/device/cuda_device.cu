// Devices, their memory, and the call table.
#include <atomic>

#include "exec/gpu/device/cuda_calls.cuh"

namespace bubblescope::exec {

namespace {

std::atomic<bool> abandoned = false;

const char* count_devices(std::int32_t* count) {
  *count = 0;
  int found = 0;
  const cudaError_t status = cudaGetDeviceCount(&found);
  if (status == cudaErrorNoDevice) return nullptr;
  *count = found;
  return check(status, "cudaGetDeviceCount");
}

const char* describe_device(std::int32_t device, BubblescopeDevice* description) {
  cudaDeviceProp properties{};
  BUBBLESCOPE_CUDA(cudaGetDeviceProperties(&properties, device));
  const std::string name = std::string(properties.name).substr(0, sizeof description->name - 1);
  name.copy(description->name, name.size());
  description->name[name.size()] = '\0';
  description->multiprocessors = properties.multiProcessorCount;
  description->capability = 10 * properties.major + properties.minor;
  description->memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  int driver_version = 0;
  BUBBLESCOPE_CUDA(cudaDriverGetVersion(&driver_version));
  description->driver_version = driver_version;
  BUBBLESCOPE_CUDA(cudaDeviceGetPCIBusId(description->bus, sizeof description->bus, device));
  return nullptr;
}

const char* link_devices(std::int32_t from, std::int32_t to) {
  int can = 0;
  BUBBLESCOPE_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
  if (can == 0) return nullptr;  // copies then go through host memory
  BUBBLESCOPE_CUDA(cudaSetDevice(from));
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status != cudaErrorPeerAccessAlreadyEnabled)
    return check(status, "cudaDeviceEnablePeerAccess");
  cudaGetLastError();  // clears the error
  return nullptr;
}

const char* await_device(std::int32_t device) {
  if (!may_release()) return nullptr;
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  BUBBLESCOPE_CUDA(cudaDeviceSynchronize());
  return nullptr;
}

void abandon() { abandoned = true; }

const char* allocate(std::int32_t device, std::size_t bytes, void** memory) {
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  const cudaError_t status = cudaMalloc(memory, bytes);
  if (status != cudaErrorMemoryAllocation) return check(status, "cudaMalloc");
  cudaGetLastError();  // clears the error, which does not affect later calls
  return store_error("device " + std::to_string(device) + " is out of memory: it cannot allocate " +
                     std::to_string(bytes) + " more bytes (" + cudaGetErrorString(status) +
                     "); use a smaller model or schedule");
}

void release_memory(void* memory) {
  if (may_release()) cudaFree(memory);
}

/// Copies overlap with kernels only from pinned memory; the flag makes it pinned for all devices.
const char* allocate_on_host(std::size_t bytes, void** memory) {
  const cudaError_t status = cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
  if (status == cudaSuccess) return nullptr;
  cudaGetLastError();
  return store_error("the host cannot allocate " + std::to_string(bytes) +
                     " bytes of pinned memory (" + cudaGetErrorString(status) +
                     "); offload less, or use a smaller model");
}

void release_on_host(void* memory) {
  if (may_release()) cudaFreeHost(memory);
}

/// A copy from pageable memory may return before it has arrived, and our streams do not synchronize
/// with the default stream, so the host waits.
const char* upload(void* to, const void* from, std::size_t bytes) {
  BUBBLESCOPE_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  BUBBLESCOPE_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  return nullptr;
}

const char* download(void* to, const void* from, std::size_t bytes) {
  BUBBLESCOPE_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  return nullptr;
}

const char* create_flag(std::uint32_t** on_host, const std::uint32_t** on_device) {
  void* host = nullptr;
  void* device = nullptr;
  BUBBLESCOPE_CUDA(
      cudaHostAlloc(&host, sizeof(std::uint32_t), cudaHostAllocMapped | cudaHostAllocPortable));
  const cudaError_t status = cudaHostGetDevicePointer(&device, host, 0);
  if (status != cudaSuccess) cudaFreeHost(host);
  if (const char* const error = check(status, "cudaHostGetDevicePointer")) return error;
  *on_host = static_cast<std::uint32_t*>(host);
  *on_device = static_cast<const std::uint32_t*>(device);
  return nullptr;
}

void release_flag(std::uint32_t* on_host) {
  if (may_release()) cudaFreeHost(on_host);
}

/// The reason why every call would fail; null if there is none.
const char* find_obstacle() {
  int driver = 0;
  int runtime = 0;
  BUBBLESCOPE_CUDA(cudaDriverGetVersion(&driver));
  BUBBLESCOPE_CUDA(cudaRuntimeGetVersion(&runtime));
  if (driver == 0)
    return store_error("no NVIDIA driver (libcuda.so.1) is installed on this machine; use `backend` cpu");
  if (driver / 1000 < runtime / 1000)
    return store_error("the NVIDIA driver knows CUDA " + std::to_string(driver / 1000) + "." +
                std::to_string(driver % 1000 / 10) + ", and CUDA " +
                std::to_string(runtime / 1000) + " is needed; install a newer driver");
  std::int32_t devices = 0;
  if (const char* const error = count_devices(&devices)) return error;
  return devices > 0 ? nullptr : store_error("there is a driver but no CUDA device; use `backend` cpu");
}

BubblescopeGpu make_table() {
  BubblescopeGpu calls{};
  add_device_calls(calls);
  add_stream_calls(calls);
  add_partition_calls(calls);
  add_kernel_calls(calls);
  add_multiply_calls(calls);
  add_label_call(calls);
  add_activity_calls(calls);
  return calls;
}

}  // namespace

const char* store_error(const std::string& error) {
  static thread_local std::string kept;
  kept = error;
  return kept.c_str();
}

const char* check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return nullptr;
  const std::string name = std::string(call).substr(0, std::string(call).find('('));
  return store_error(name + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

bool may_release() { return !abandoned; }

void add_device_calls(BubblescopeGpu& calls) {
  calls.count_devices = count_devices;
  calls.describe_device = describe_device;
  calls.link_devices = link_devices;
  calls.await_device = await_device;
  calls.abandon = abandon;
  calls.allocate = allocate;
  calls.release_memory = release_memory;
  calls.allocate_on_host = allocate_on_host;
  calls.release_on_host = release_on_host;
  calls.upload = upload;
  calls.download = download;
  calls.create_flag = create_flag;
  calls.release_flag = release_flag;
}

}  // namespace bubblescope::exec

const BubblescopeGpu* bubblescope_open_gpu(const char** error) {
  static const BubblescopeGpu calls = bubblescope::exec::make_table();
  *error = bubblescope::exec::find_obstacle();
  return *error == nullptr ? &calls : nullptr;
}
