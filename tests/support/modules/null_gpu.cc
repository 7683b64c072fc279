// A device on which nothing takes time and nothing is computed, as a module that the program can
// open in place of bubblescope_cuda.so: what remains of a run is the host's own work. Memory has
// addresses and no storage.
#include <atomic>
#include <cstring>
#include <string_view>

#include "exec/gpu/calls.h"

namespace bubblescope::tests {

namespace {

/// The latest flag that a kernel waits for. Until it is set, nothing has ended.
const volatile std::uint32_t* gate = nullptr;

void* next_address(std::size_t bytes) {
  static std::atomic<std::uintptr_t> next{std::uintptr_t{1} << 40};
  return reinterpret_cast<void*>(next.fetch_add((bytes + 511) / 256 * 256));
}

const char* create(void** handle) {
  *handle = next_address(1);
  return nullptr;
}

void release(void*) {}

const char* describe_device(std::int32_t, BubblescopeDevice* description) {
  *description = {};
  const std::string_view name = "a device that does nothing";
  name.copy(description->name, name.size());
  description->multiprocessors = 132;
  description->capability = 90;
  description->driver_version = 13000;
  description->memory_bytes = std::int64_t{141} << 30;
  return nullptr;
}

void add_memory(BubblescopeGpu& calls) {
  calls.allocate = [](std::int32_t, std::size_t bytes, void** memory) -> const char* {
    *memory = next_address(bytes);
    return nullptr;
  };
  calls.release_memory = release;
  calls.allocate_on_host = [](std::size_t bytes, void** memory) -> const char* {
    *memory = next_address(bytes);
    return nullptr;
  };
  calls.release_on_host = release;
  calls.upload = [](void*, const void*, std::size_t) -> const char* { return nullptr; };
  calls.download = [](void* to, const void*, std::size_t bytes) -> const char* {
    std::memset(to, 0, bytes);
    return nullptr;
  };
  calls.create_flag = [](std::uint32_t** on_host, const std::uint32_t** on_device) -> const char* {
    *on_device = *on_host = new std::uint32_t(0);
    return nullptr;
  };
  calls.release_flag = [](std::uint32_t* on_host) {
    if (gate == on_host) gate = nullptr;
    delete on_host;
  };
}

void add_devices(BubblescopeGpu& calls) {
  calls.count_devices = [](std::int32_t* count) -> const char* {
    *count = 1;
    return nullptr;
  };
  calls.describe_device = describe_device;
  calls.link_devices = [](std::int32_t, std::int32_t) -> const char* { return nullptr; };
  calls.await_device = [](std::int32_t) -> const char* { return nullptr; };
  calls.abandon = [] {};
  calls.count_partitions = [](std::int32_t, std::int32_t size, std::int32_t* parts) -> const char* {
    *parts = 132 / size;
    return nullptr;
  };
  calls.split = [](std::int32_t, std::int32_t, std::int32_t parts, void** made) -> const char* {
    for (std::int32_t part = 0; part < parts; ++part) create(&made[part]);
    return nullptr;
  };
  calls.release_partition = release;
}

void add_streams(BubblescopeGpu& calls) {
  calls.create_stream = [](std::int32_t, void*, void** stream) { return create(stream); };
  calls.release_stream = release;
  calls.create_event = [](std::int32_t, std::int32_t, void** event) { return create(event); };
  calls.release_event = release;
  calls.record = calls.record_in_graph = [](void*, void*) -> const char* { return nullptr; };
  calls.wait = [](void*, void*) -> const char* { return nullptr; };
  calls.query = [](void*, std::int32_t* ended) -> const char* {
    *ended = gate == nullptr || *gate != 0 ? 1 : 0;
    return nullptr;
  };
  calls.elapsed = [](void*, void*, double* nanos) -> const char* {
    *nanos = 0;
    return nullptr;
  };
  calls.begin_capture = [](void*) -> const char* { return nullptr; };
  calls.end_capture = [](void*, void** graph) { return create(graph); };
  calls.launch_graph = [](void*, void*) -> const char* { return nullptr; };
  calls.release_graph = release;
}

void add_work(BubblescopeGpu& calls) {
  calls.label = [](const char*) {};
  calls.start_activity = []() -> const char* { return "this device has no profiler"; };
  calls.tag = [](std::uint64_t) -> const char* { return nullptr; };
  calls.read_activity = [](BubblescopeTakeActivity, void*, std::int64_t* lost) -> const char* {
    *lost = 0;
    return nullptr;
  };
  calls.copy = [](void*, const void*, std::size_t, void*) -> const char* { return nullptr; };
  calls.clear = [](void*, std::size_t, void*) -> const char* { return nullptr; };
  calls.spin = [](const BubblescopeSpin* spin, void*) -> const char* {
    if (spin->awaits_stop != 0) gate = spin->stop;
    return nullptr;
  };
  calls.launch = [](const bubblescope::exec::KernelLaunch*, void*) -> const char* {
    return nullptr;
  };
  calls.create_blas_handle = [](std::int32_t, std::int32_t, std::int32_t, void** made) {
    return create(made);
  };
  calls.release_blas_handle = release;
  calls.multiply = [](void*, const BubblescopeGemm*, void*) -> const char* { return nullptr; };
  calls.blas_version = [](void*) { return std::int64_t{0}; };
  calls.can_multiply = [](void*, const BubblescopeGemm*, std::int32_t* can) -> const char* {
    *can = 1;
    return nullptr;
  };
}

BubblescopeGpu make_calls() {
  BubblescopeGpu calls{};
  add_devices(calls);
  add_memory(calls);
  add_streams(calls);
  add_work(calls);
  return calls;
}

}  // namespace

}  // namespace bubblescope::tests

const BubblescopeGpu* bubblescope_open_gpu(const char** error) {
  static const BubblescopeGpu calls = bubblescope::tests::make_calls();
  *error = nullptr;
  return &calls;
}
