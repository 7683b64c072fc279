// Green contexts, and the runtime's lookup of driver functions.
#include <cuda.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/fake_cuda/devices.h"
#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

namespace {

/// In multiprocessors, for compute capability 9.0.
constexpr unsigned int kGranularity = 8;

/// The multiprocessors of a resource; stored in the driver's part of it.
struct Cut {
  std::int32_t device;
  unsigned int first;
  bool was_split;
};

/// [number in the resource].
std::map<unsigned int, Cut>& cuts() {
  static auto& instance = *new std::map<unsigned int, Cut>;
  return instance;
}

CUdevResource make_resource(unsigned int count, const Cut& cut) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = count;
  const auto number = static_cast<unsigned int>(cuts().size()) + 1;
  cuts()[number] = cut;
  resource._internal_padding[0] = static_cast<unsigned char>(number % 256);
  resource._internal_padding[1] = static_cast<unsigned char>(number / 256 % 256);
  return resource;
}

const Cut* cut_of(const CUdevResource& resource) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return nullptr;
  const auto at = cuts().find(resource._internal_padding[0] + 256U * resource._internal_padding[1]);
  return at != cuts().end() ? &at->second : nullptr;
}

Registry<GreenContext>& contexts() {
  static auto& instance = *new Registry<GreenContext>("green contexts");
  return instance;
}

/// Runs `body` as a runtime call: driver and runtime have the same error numbers.
template <class Body>
CUresult driver_call(const char* name, const Body& body) {
  return static_cast<CUresult>(call(name, [&] { return static_cast<cudaError_t>(body()); }));
}

CUresult get_device(CUdevice* device, int ordinal) {
  return driver_call("cuDeviceGet", [&] {
    if (ordinal < 0 || ordinal >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult get_resource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return driver_call("cuDeviceGetDevResource", [&] {
    if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = make_resource(kMultiprocessors, {device, 0, false});
    return CUDA_SUCCESS;
  });
}

CUresult split(CUdevResource* result, unsigned int* groups, const CUdevResource* input,
               CUdevResource* remaining, unsigned int flags, unsigned int min_count) {
  return driver_call("cuDevSmResourceSplitByCount", [&] {
    const Cut* const whole = cut_of(*input);
    if (whole == nullptr) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (whole->was_split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (groups == nullptr || flags != 0 || min_count > input->sm.smCount)
      return CUDA_ERROR_INVALID_VALUE;
    const Cut of = *whole;
    const unsigned int size =
        std::max((min_count + kGranularity - 1) / kGranularity * kGranularity, kGranularity);
    *groups = std::min(*groups, input->sm.smCount / size);
    if (result == nullptr) return CUDA_SUCCESS;  // it was only counted
    for (unsigned int group = 0; group < *groups; ++group)
      result[group] = make_resource(size, {of.device, of.first + group * size, true});
    if (remaining != nullptr)
      *remaining = make_resource(input->sm.smCount - *groups * size,
                                 {of.device, of.first + *groups * size, true});
    return CUDA_SUCCESS;
  });
}

/// Descriptors are never freed by the driver: they live as long as the process.
CUresult describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned int count) {
  return driver_call("cuDevResourceGenerateDesc", [&] {
    if (count != 1 || cut_of(*resources) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    static auto& kept = *new std::map<unsigned int, CUdevResource>;
    const auto at = kept.emplace(static_cast<unsigned int>(kept.size()), *resources).first;
    *description = reinterpret_cast<CUdevResourceDesc>(&at->second);
    return CUDA_SUCCESS;
  });
}

CUresult create_context(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                        unsigned int flags) {
  return driver_call("cuGreenCtxCreate", [&] {
    if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    const auto& resource = *reinterpret_cast<const CUdevResource*>(description);
    const Cut* const cut = cut_of(resource);
    if (cut == nullptr || cut->device != device) return CUDA_ERROR_INVALID_DEVICE;
    *context = reinterpret_cast<CUgreenCtx>(contexts().add({device, resource.sm.smCount}));
    return CUDA_SUCCESS;
  });
}

/// All streams of the context must have been destroyed.
CUresult destroy_context(CUgreenCtx context) {
  return driver_call("cuGreenCtxDestroy", [&] {
    const GreenContext& gone = contexts().find(context, "cuGreenCtxDestroy");
    streams().for_each([&](const Stream& stream) {
      if (stream.context == &gone) refuse("cuGreenCtxDestroy: it still has streams");
    });
    contexts().remove(context, "cuGreenCtxDestroy");
    return CUDA_SUCCESS;
  });
}

CUresult create_stream(CUstream* stream, CUgreenCtx context, unsigned int flags, int priority) {
  return driver_call("cuGreenCtxStreamCreate", [&] {
    const GreenContext& of = contexts().find(context, "cuGreenCtxStreamCreate");
    if (flags != CU_STREAM_NON_BLOCKING || priority != 0) return CUDA_ERROR_INVALID_VALUE;
    *stream = reinterpret_cast<CUstream>(streams().add({of.device, &of}));
    return CUDA_SUCCESS;
  });
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* find_function(const std::string& name) {
  if (name == "cuDeviceGet") return address_of(get_device);
  if (name == "cuDeviceGetDevResource") return address_of(get_resource);
  if (name == "cuDevSmResourceSplitByCount") return address_of(split);
  if (name == "cuDevResourceGenerateDesc") return address_of(describe);
  if (name == "cuGreenCtxCreate") return address_of(create_context);
  if (name == "cuGreenCtxDestroy") return address_of(destroy_context);
  if (name == "cuGreenCtxStreamCreate") return address_of(create_stream);
  return nullptr;
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                             unsigned int version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", [&] {
    if (flags != cudaEnableDefault) return cudaErrorInvalidValue;
    *function = find_function(name);
    *result = *function == nullptr     ? cudaDriverEntryPointSymbolNotFound
              : version > CUDA_VERSION ? cudaDriverEntryPointVersionNotSufficent
                                       : cudaDriverEntryPointSuccess;
    return cudaSuccess;
  });
}
