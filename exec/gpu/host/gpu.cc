// Calls the CUDA module.
#include "exec/gpu/host/gpu.h"

#include <string_view>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// The module reports every lack of memory in CUDA's words, "out of memory".
Fault fault_of(std::string_view error) {
  return error.find("out of memory") != error.npos ? Fault::kMemory : Fault::kMachine;
}

void expect(const char* error) {
  if (error != nullptr) throw Error(fault_of(error), error);
}

}  // namespace

GpuFlag::GpuFlag(const BubblescopeGpu& calls) : calls_(calls) {
  expect(calls_.create_flag(&on_host_, &on_device_));
  set(0);
}

void GpuRuntime::enqueue(const char* error) const {
  expect(error);
  ++commands_;
}

std::vector<BubblescopeDevice> GpuRuntime::devices() const {
  std::int32_t count = 0;
  expect(calls_.count_devices(&count));
  std::vector<BubblescopeDevice> devices;
  for (std::int32_t device = first_device_; device < count; ++device)
    expect(calls_.describe_device(device, &devices.emplace_back()));
  return devices;
}

void GpuRuntime::link_devices(std::int32_t from, std::int32_t to) const {
  expect(calls_.link_devices(first_device_ + from, first_device_ + to));
}

void GpuRuntime::await_device(std::int32_t device) const {
  expect(calls_.await_device(first_device_ + device));
}

GpuHandle GpuRuntime::allocate(std::int32_t device, std::size_t bytes) const {
  void* memory = nullptr;
  expect(calls_.allocate(first_device_ + device, bytes, &memory));
  return GpuHandle(memory, {calls_.release_memory});
}

GpuHandle GpuRuntime::allocate_on_host(std::size_t bytes) const {
  void* memory = nullptr;
  expect(calls_.allocate_on_host(bytes, &memory));
  return GpuHandle(memory, {calls_.release_on_host});
}

void GpuRuntime::upload(void* to, const void* from, std::size_t bytes) const {
  expect(calls_.upload(to, from, bytes));
}

void GpuRuntime::download(void* to, const void* from, std::size_t bytes) const {
  expect(calls_.download(to, from, bytes));
}

std::int32_t GpuRuntime::count_partitions(std::int32_t device, std::int32_t multiprocessors) const {
  std::int32_t parts = 0;
  expect(calls_.count_partitions(first_device_ + device, multiprocessors, &parts));
  return parts;
}

std::vector<GpuHandle> GpuRuntime::split(std::int32_t device, std::int32_t multiprocessors,
                                         std::int32_t parts) const {
  std::vector<void*> handles(static_cast<std::size_t>(parts), nullptr);
  const char* const error =
      calls_.split(first_device_ + device, multiprocessors, parts, handles.data());
  std::vector<GpuHandle> partitions;
  for (void* const partition : handles)
    partitions.push_back(GpuHandle(partition, {calls_.release_partition}));
  expect(error);
  return partitions;
}

GpuHandle GpuRuntime::create_stream(std::int32_t device, void* partition) const {
  void* stream = nullptr;
  expect(calls_.create_stream(first_device_ + device, partition, &stream));
  return GpuHandle(stream, {calls_.release_stream});
}

GpuHandle GpuRuntime::create_event(std::int32_t device, EventUse use) const {
  void* event = nullptr;
  expect(calls_.create_event(first_device_ + device, use == EventUse::kTimed ? 1 : 0, &event));
  return GpuHandle(event, {calls_.release_event});
}

GpuHandle GpuRuntime::create_blas_handle(const RankPlace& place, bool sets_sm_count) const {
  void* blas_handle = nullptr;
  expect(calls_.create_blas_handle(first_device_ + place.device, place.multiprocessors,
                                   sets_sm_count ? 1 : 0, &blas_handle));
  return GpuHandle(blas_handle, {calls_.release_blas_handle});
}

void GpuRuntime::record(const GpuHandle& event, const GpuHandle& stream) const {
  enqueue(calls_.record(event.get(), stream.get()));
}

void GpuRuntime::record_in_graph(const GpuHandle& event, const GpuHandle& stream) const {
  enqueue(calls_.record_in_graph(event.get(), stream.get()));
}

void GpuRuntime::wait(const GpuHandle& stream, const GpuHandle& event) const {
  enqueue(calls_.wait(stream.get(), event.get()));
}

bool GpuRuntime::has_ended(const GpuHandle& event) const {
  std::int32_t ended = 0;
  expect(calls_.query(event.get(), &ended));
  return ended != 0;
}

Nanos GpuRuntime::elapsed(const GpuHandle& from, const GpuHandle& to) const {
  double nanos = 0;
  expect(calls_.elapsed(from.get(), to.get(), &nanos));
  return static_cast<Nanos>(nanos);
}

void GpuRuntime::begin_capture(const GpuHandle& stream) const {
  expect(calls_.begin_capture(stream.get()));
}

GpuHandle GpuRuntime::end_capture(const GpuHandle& stream) const {
  void* graph = nullptr;
  expect(calls_.end_capture(stream.get(), &graph));
  return GpuHandle(graph, {calls_.release_graph});
}

void GpuRuntime::launch_graph(const GpuHandle& graph, const GpuHandle& stream) const {
  expect(calls_.launch_graph(graph.get(), stream.get()));
}

void GpuRuntime::copy(void* to, const void* from, std::size_t bytes, void* stream) const {
  enqueue(calls_.copy(to, from, bytes, stream));
}

void GpuRuntime::clear(void* memory, std::size_t bytes, void* stream) const {
  enqueue(calls_.clear(memory, bytes, stream));
}

void GpuRuntime::spin(const BubblescopeSpin& spin, void* stream) const {
  enqueue(calls_.spin(&spin, stream));
}

void GpuRuntime::launch(const KernelLaunch& launch, void* stream) const {
  enqueue(calls_.launch(&launch, stream));
}

void GpuRuntime::multiply(const GpuHandle& blas_handle, const BubblescopeGemm& gemm,
                          void* stream) const {
  enqueue(calls_.multiply(blas_handle.get(), &gemm, stream));
}

bool GpuRuntime::can_multiply(const GpuHandle& blas_handle, const BubblescopeGemm& gemm) const {
  std::int32_t can = 0;
  expect(calls_.can_multiply(blas_handle.get(), &gemm, &can));
  return can != 0;
}

std::string describe_devices(const std::vector<BubblescopeDevice>& devices) {
  if (devices.empty()) return "no CUDA device";
  const std::int32_t driver = devices[0].driver_version;
  return (devices.size() > 1 ? std::to_string(devices.size()) + " x " : "") + devices[0].name +
         ", " + counted(devices[0].multiprocessors, "multiprocessor") + ", CUDA driver " +
         std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

}  // namespace bubblescope::exec
