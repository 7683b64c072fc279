// The GPU interface of the host: calls of the CUDA module that throw their errors and own their
// handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/place_ranks.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// Releases a handle of the module.
struct ReleaseHandle {
  void (*release)(void* handle) = nullptr;
  void operator()(void* handle) const { release(handle); }
};
using GpuHandle = std::unique_ptr<void, ReleaseHandle>;

/// A word in host memory through which the host and devices signal each other.
class GpuFlag {
 public:
  explicit GpuFlag(const BubblescopeGpu& calls);
  ~GpuFlag() { calls_.release_flag(on_host_); }
  GpuFlag(const GpuFlag&) = delete;
  GpuFlag& operator=(const GpuFlag&) = delete;

  void set(std::uint32_t value) { *const_cast<volatile std::uint32_t*>(on_host_) = value; }
  const std::uint32_t* on_device() const { return on_device_; }

 private:
  const BubblescopeGpu& calls_;
  std::uint32_t* on_host_ = nullptr;
  const std::uint32_t* on_device_ = nullptr;
};

/// Whether an event has a time, or only orders streams, which costs less.
enum class EventUse : std::uint8_t { kTimed, kOrderOnly };

/// Every call throws Error (Fault::kMachine, or Fault::kMemory for a lack of it) if the module
/// reports one. `calls` must outlive the GpuRuntime, and the GpuRuntime its
/// handles.
class GpuRuntime {
 public:
  /// `first_device` is device 0 of this object.
  explicit GpuRuntime(const BubblescopeGpu& calls, std::int32_t first_device = 0)
      : calls_(calls), first_device_(first_device) {}

  const BubblescopeGpu& calls() const { return calls_; }

  std::vector<BubblescopeDevice> devices() const;
  void link_devices(std::int32_t from, std::int32_t to) const;
  void await_device(std::int32_t device) const;

  GpuHandle allocate(std::int32_t device, std::size_t bytes) const;
  /// Allocates pinned host memory.
  GpuHandle allocate_on_host(std::size_t bytes) const;
  void upload(void* to, const void* from, std::size_t bytes) const;
  void download(void* to, const void* from, std::size_t bytes) const;

  std::int32_t count_partitions(std::int32_t device, std::int32_t multiprocessors) const;
  std::vector<GpuHandle> split(std::int32_t device, std::int32_t multiprocessors,
                               std::int32_t parts) const;
  /// `partition` may be null for the whole device.
  GpuHandle create_stream(std::int32_t device, void* partition) const;
  GpuHandle create_event(std::int32_t device, EventUse use) const;
  /// `sets_sm_count`: cuBLASLt gets the number of multiprocessors for every GEMM.
  GpuHandle create_blas_handle(const RankPlace& place, bool sets_sm_count = false) const;

  void record(const GpuHandle& event, const GpuHandle& stream) const;
  void record_in_graph(const GpuHandle& event, const GpuHandle& stream) const;
  void wait(const GpuHandle& stream, const GpuHandle& event) const;
  bool has_ended(const GpuHandle& event) const;
  /// Returns the time between two events of one device, both of which have ended.
  Nanos elapsed(const GpuHandle& from, const GpuHandle& to) const;

  void begin_capture(const GpuHandle& stream) const;
  GpuHandle end_capture(const GpuHandle& stream) const;
  void launch_graph(const GpuHandle& graph, const GpuHandle& stream) const;

  /// How many commands were put on streams. A stream holds about a thousand.
  std::int64_t commands() const { return commands_; }

  void copy(void* to, const void* from, std::size_t bytes, void* stream) const;
  void clear(void* memory, std::size_t bytes, void* stream) const;
  void spin(const BubblescopeSpin& spin, void* stream) const;
  void launch(const KernelLaunch& launch, void* stream) const;
  void multiply(const GpuHandle& blas_handle, const BubblescopeGemm& gemm, void* stream) const;
  std::int64_t blas_version(const GpuHandle& blas_handle) const {
    return calls_.blas_version(blas_handle.get());
  }
  bool can_multiply(const GpuHandle& blas_handle, const BubblescopeGemm& gemm) const;

 private:
  void enqueue(const char* error) const;

  const BubblescopeGpu& calls_;
  std::int32_t first_device_;
  mutable std::int64_t commands_ = 0;
};

/// Loads bubblescope_cuda.so, or the file named by the environment variable
/// BUBBLESCOPE_CUDA_MODULE, and with it the driver. Throws Error (Fault::kMachine) that names the
/// missing one. The module is never unloaded.
const BubblescopeGpu& open_gpu();

/// Loads the module from this file.
const BubblescopeGpu& open_gpu(const std::string& module_file);

/// Returns a text such as "2 x NVIDIA H200, CUDA driver 13.0".
std::string describe_devices(const std::vector<BubblescopeDevice>& devices);

}  // namespace bubblescope::exec
