// Green contexts: partitions of a device's multiprocessors, and streams on them. Functions of the
// driver are looked up at run time, so that the module also loads without a driver.
#include <cuda.h>

#include <memory>
#include <vector>

#include "exec/gpu/device/cuda_calls.cuh"

namespace bubblescope::exec {

namespace {

/// The driver uses the runtime's error numbers.
const char* check_driver(CUresult status, const char* call) {
  return check(static_cast<cudaError_t>(status), call);
}

struct Driver {
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetDevResource) get_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split_by_count = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe_resource = nullptr;
  decltype(&cuGreenCtxCreate) create_context = nullptr;
  decltype(&cuGreenCtxDestroy) destroy_context = nullptr;
  decltype(&cuGreenCtxStreamCreate) create_stream = nullptr;
};

template <class Function>
const char* find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  BUBBLESCOPE_CUDA(
      cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    return store_error(std::string("the NVIDIA driver has no ") + name +
                       "; install one for CUDA 13, or use `share` streams");
  function = reinterpret_cast<Function>(found);
  return nullptr;
}

const char* load(Driver& driver) {
  const char* error = find("cuDeviceGet", driver.device_get);
  if (!error) error = find("cuDeviceGetDevResource", driver.get_resource);
  if (!error) error = find("cuDevSmResourceSplitByCount", driver.split_by_count);
  if (!error) error = find("cuDevResourceGenerateDesc", driver.describe_resource);
  if (!error) error = find("cuGreenCtxCreate", driver.create_context);
  if (!error) error = find("cuGreenCtxDestroy", driver.destroy_context);
  if (!error) error = find("cuGreenCtxStreamCreate", driver.create_stream);
  return error;
}

struct Partition {
  Driver driver;
  CUgreenCtx context = nullptr;
};

/// Makes the device current, loads the driver's functions and looks up the device's handle.
const char* open_device(std::int32_t device, Driver& driver, CUdevice& handle) {
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  BUBBLESCOPE_CUDA(cudaFree(nullptr));  // creates the primary context
  if (const char* const error = load(driver)) return error;
  return check_driver(driver.device_get(&handle, device), "cuDeviceGet");
}

/// Without a result, the driver only counts. It counts all groups if it is asked for any number.
const char* count_partitions(std::int32_t device, std::int32_t multiprocessors,
                             std::int32_t* parts) {
  Driver driver;
  CUdevice handle = 0;
  if (const char* const error = open_device(device, driver, handle)) return error;
  CUdevResource whole{};
  if (const char* const error = check_driver(
          driver.get_resource(handle, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource"))
    return error;
  unsigned int groups = whole.sm.smCount;
  if (const char* const error =
          check_driver(driver.split_by_count(nullptr, &groups, &whole, nullptr, 0,
                                             static_cast<unsigned int>(multiprocessors)),
                       "cuDevSmResourceSplitByCount"))
    return error;
  *parts = static_cast<std::int32_t>(groups);
  return nullptr;
}

/// Splits the multiprocessors of a device, and checks the number of parts.
const char* cut(const Driver& driver, CUdevice device, unsigned int multiprocessors,
                std::vector<CUdevResource>& parts) {
  CUdevResource whole{};
  if (const char* const error = check_driver(
          driver.get_resource(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource"))
    return error;
  const auto wanted = static_cast<unsigned int>(parts.size());
  unsigned int created = wanted;
  CUdevResource remaining{};
  if (const char* const error = check_driver(
          driver.split_by_count(parts.data(), &created, &whole, &remaining, 0, multiprocessors),
          "cuDevSmResourceSplitByCount"))
    return error;
  if (created >= wanted && parts[0].sm.smCount == multiprocessors) return nullptr;
  return store_error("the driver splits " + std::to_string(whole.sm.smCount) +
                     " multiprocessors into " + std::to_string(created) + " partitions of " +
                     std::to_string(parts[0].sm.smCount) + ", not " + std::to_string(wanted) +
                     " of " + std::to_string(multiprocessors) + "; use `share` streams");
}

const char* create_partition(const Driver& driver, CUdevice device, CUdevResource& part,
                             void** partition) {
  CUdevResourceDesc description = nullptr;
  if (const char* const error = check_driver(driver.describe_resource(&description, &part, 1),
                                             "cuDevResourceGenerateDesc"))
    return error;
  auto created = std::make_unique<Partition>();
  created->driver = driver;
  if (const char* const error =
          check_driver(driver.create_context(&created->context, description, device,
                                             CU_GREEN_CTX_DEFAULT_STREAM),
                       "cuGreenCtxCreate"))
    return error;
  *partition = created.release();
  return nullptr;
}

const char* split(std::int32_t device, std::int32_t multiprocessors, std::int32_t parts,
                  void** partitions) {
  Driver driver;
  CUdevice handle = 0;
  if (const char* const error = open_device(device, driver, handle)) return error;
  std::vector<CUdevResource> cuts(static_cast<std::size_t>(parts));
  if (const char* const error =
          cut(driver, handle, static_cast<unsigned int>(multiprocessors), cuts))
    return error;
  for (std::size_t part = 0; part < cuts.size(); ++part)
    if (const char* const error = create_partition(driver, handle, cuts[part], &partitions[part]))
      return error;
  return nullptr;
}

void release_partition(void* partition) {
  const std::unique_ptr<Partition> owned(static_cast<Partition*>(partition));
  if (may_release()) owned->driver.destroy_context(owned->context);
}

/// The stream does not synchronize with the default stream.
const char* create_stream(std::int32_t device, void* partition, void** stream) {
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  auto created = std::make_unique<CudaStream>(CudaStream{nullptr, device});
  if (partition == nullptr) {
    BUBBLESCOPE_CUDA(cudaStreamCreateWithFlags(&created->stream, cudaStreamNonBlocking));
  } else {
    const auto* const part = static_cast<Partition*>(partition);
    if (const char* const error = check_driver(
            part->driver.create_stream(&created->stream, part->context, CU_STREAM_NON_BLOCKING, 0),
            "cuGreenCtxStreamCreate"))
      return error;
  }
  *stream = created.release();
  return nullptr;
}

}  // namespace

void add_partition_calls(BubblescopeGpu& calls) {
  calls.count_partitions = count_partitions;
  calls.split = split;
  calls.release_partition = release_partition;
  calls.create_stream = create_stream;
}

}  // namespace bubblescope::exec
