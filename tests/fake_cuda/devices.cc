// Devices, versions and errors.
#include "tests/fake_cuda/devices.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "tests/fake_cuda/engine.h"
#include "tests/fake_cuda/memory.h"

namespace bubblescope::tests::fake_cuda {

namespace {

std::int32_t& current() {
  thread_local std::int32_t device = 0;
  return device;
}

/// Pairs of devices of which the first may access the memory of the second.
std::set<std::pair<std::int32_t, std::int32_t>>& links() {
  static auto& instance = *new std::set<std::pair<std::int32_t, std::int32_t>>;
  return instance;
}

bool is_device(std::int32_t device) { return device >= 0 && device < device_count(); }

}  // namespace

std::int32_t device_count() {
  const char* const asked = std::getenv("BUBBLESCOPE_FAKE_CUDA_DEVICES");
  return asked != nullptr ? std::stoi(asked) : 1;
}

std::int32_t current_device() { return current(); }

bool reaches_peer(std::int32_t device, std::int32_t other) {
  return links().count({device, other}) != 0;
}

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    *count = device_count();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    current() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "Fake H200");
    properties->totalGlobalMem = kDeviceBytes;
    properties->multiProcessorCount = kMultiprocessors;
    properties->major = 9;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int bytes, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    if (!is_device(device) || bytes < 13) return cudaErrorInvalidValue;
    std::snprintf(name, static_cast<std::size_t>(bytes), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&] {
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return call("cudaDeviceEnablePeerAccess", [&] {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!is_device(peer) || peer == current()) return cudaErrorInvalidDevice;
    return links().emplace(current(), peer).second ? cudaSuccess
                                                   : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    await_device(current(), "cudaDeviceSynchronize");
    return device_error();
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&] {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

/// The error of a broken device is returned again and again.
cudaError_t cudaGetLastError() {
  const bool fails = counts_as_failure("cudaGetLastError");
  const cudaError_t last = fails ? cudaErrorUnknown : std::exchange(last_error(), cudaSuccess);
  return last != cudaSuccess ? last : device_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    default: return "cudaErrorOther";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  thread_local std::string text;
  text = "fake CUDA's error " + std::to_string(static_cast<int>(error));
  return text.c_str();
}
