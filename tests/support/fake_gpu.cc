// Handles, and the work on streams.
#include "tests/support/fake_gpu.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "tests/support/fake_activity.h"
#include "tests/support/fake_kernels.h"

namespace bubblescope::tests {

namespace {

struct Stream {
  std::size_t at = 0;  ///< index in the device clock
  double multiprocessors = 1;
  bool in_capture = false;
};

struct Event {
  bool timed = false;
  std::optional<std::int64_t> mark = {};  ///< in the device clock; empty: not recorded yet
  bool of_capture = false;
  const Stream* on = nullptr;
};

using Graph = std::vector<std::function<void()>>;

struct State {
  FakeGpu gpu;
  DeviceClock clock;
  FakeActivity activity;
  std::map<void*, std::int64_t> memory;
  bool captures = false;
  Graph graph;
  std::set<const Stream*> unjoined;  ///< with work that the capture has not joined yet
};

State& state() {
  static State made;
  return made;
}

const char* answer(const char* call) {
  return state().gpu.fails_at == call ? "the fake device fails as it was told" : nullptr;
}

/// Runs the action now, or whenever the graph that is being captured is launched.
void perform(std::function<void()> action) {
  if (state().captures)
    state().graph.push_back(std::move(action));
  else
    action();
}

const char* join_capture(const Stream& stream) {
  if (!state().captures || stream.in_capture) return nullptr;
  return "a stream that is not captured is used during a capture";
}

/// Notes that something is put on the stream. A capture is valid only if another stream waits for
/// it before the end.
const char* use(void* stream) {
  auto* const on = static_cast<Stream*>(stream);
  if (state().captures) state().unjoined.insert(on);
  return join_capture(*on);
}

template <class Made>
const char* create(const char* call, Made made, void** handle) {
  if (const char* const error = answer(call)) return error;
  *handle = new Made(std::move(made));
  ++state().gpu.handles;
  return nullptr;
}

template <class Made>
void release(void* handle) {
  --state().gpu.handles;
  delete static_cast<Made*>(handle);
}

void add_devices(BubblescopeGpu& calls) {
  calls.count_devices = [](std::int32_t* count) {
    *count = static_cast<std::int32_t>(state().gpu.devices.size());
    return answer("count_devices");
  };
  calls.describe_device = [](std::int32_t device, BubblescopeDevice* description) {
    *description = state().gpu.devices[static_cast<std::size_t>(device)];
    return answer("describe_device");
  };
  calls.link_devices = [](std::int32_t, std::int32_t) { return answer("link_devices"); };
  calls.await_device = [](std::int32_t) {
    state().clock.advance();
    return answer("await_device");
  };
  calls.abandon = [] { state().gpu.was_abandoned = true; };
}

/// Fresh memory is filled with NaN, so that reads of unwritten memory show.
void add_memory(BubblescopeGpu& calls) {
  calls.allocate = [](std::int32_t, std::size_t bytes, void** memory) {
    if (const char* const error = answer("allocate")) return error;
    auto* const made = new float[(bytes + 3) / 4];
    std::memset(made, 0xff, (bytes + 3) / 4 * 4);
    *memory = made;
    state().memory[made] = static_cast<std::int64_t>(bytes);
    state().gpu.bytes += static_cast<std::int64_t>(bytes);
    return answer("none");
  };
  calls.release_memory = [](void* memory) {
    state().gpu.bytes -= state().memory[memory];
    state().memory.erase(memory);
    delete[] static_cast<float*>(memory);
  };
  calls.allocate_on_host = [](std::size_t bytes, void** memory) {
    if (const char* const error = answer("allocate_on_host")) return error;
    *memory = new float[(bytes + 3) / 4];
    std::memset(*memory, 0xff, (bytes + 3) / 4 * 4);
    state().gpu.host_bytes += static_cast<std::int64_t>(bytes);
    ++state().gpu.handles;
    return answer("none");
  };
  calls.release_on_host = [](void* memory) {
    --state().gpu.handles;
    delete[] static_cast<float*>(memory);
  };
  calls.upload = [](void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    state().gpu.uploaded_bytes += static_cast<std::int64_t>(bytes);
    return answer("upload");
  };
  calls.download = [](void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    state().gpu.downloaded_bytes += static_cast<std::int64_t>(bytes);
    return answer("download");
  };
  calls.create_flag = [](std::uint32_t** on_host, const std::uint32_t** on_device) {
    const char* const error = answer("create_flag");
    if (error == nullptr) *on_device = *on_host = new std::uint32_t(0);
    return error;
  };
  calls.release_flag = [](std::uint32_t* on_host) { delete on_host; };
}

void add_streams(BubblescopeGpu& calls) {
  calls.count_partitions = [](std::int32_t, std::int32_t size, std::int32_t* parts) {
    *parts = 0;
    for (const std::int32_t cluster : state().gpu.clusters) *parts += cluster / size;
    return answer("count_partitions");
  };
  calls.split = [](std::int32_t, std::int32_t multiprocessors, std::int32_t parts,
                   void** partitions) {
    for (std::int32_t part = 0; part < parts; ++part) {
      if (const char* const error = create("split", multiprocessors, &partitions[part]))
        return error;
      state().gpu.partition_sizes.push_back(multiprocessors);
    }
    return answer("none");
  };
  calls.release_partition = release<std::int32_t>;
  calls.create_stream = [](std::int32_t device, void* partition, void** stream) {
    Stream made;
    made.at = state().clock.add_stream(device);
    made.multiprocessors =
        partition != nullptr
            ? *static_cast<std::int32_t*>(partition)
            : state().gpu.devices[static_cast<std::size_t>(device)].multiprocessors;
    return create("create_stream", made, stream);
  };
  calls.release_stream = [](void* stream) {
    state().clock.remove_stream(static_cast<Stream*>(stream)->at);
    release<Stream>(stream);
  };
  calls.create_event = [](std::int32_t, std::int32_t timed, void** event) {
    Event made;
    made.timed = timed != 0;
    return create("create_event", made, event);
  };
  calls.release_event = release<Event>;
}

void set_event(Event& event, const Stream& stream) { event.mark = state().clock.record(stream.at); }

std::optional<double> time_of(const Event& event) {
  return event.mark ? state().clock.time_of(*event.mark) : 0;
}

void add_events(BubblescopeGpu& calls) {
  calls.record = [](void* event, void* stream) {
    auto* const of = static_cast<Event*>(event);
    auto* const on = static_cast<Stream*>(stream);
    if (const char* const error = join_capture(*on)) return error;
    of->of_capture = state().captures;
    of->on = on;
    perform([of, on] { set_event(*of, *on); });
    return answer("record");
  };
  calls.record_in_graph = [](void* event, void* stream) {
    if (!state().captures) return "nothing is captured";
    if (const char* const error = use(stream)) return error;
    perform([=] { set_event(*static_cast<Event*>(event), *static_cast<Stream*>(stream)); });
    return answer("record_in_graph");
  };
  calls.wait = [](void* stream, void* event) {
    auto* const on = static_cast<Stream*>(stream);
    auto* const of = static_cast<Event*>(event);
    if (state().captures && !of->of_capture) return "an event from outside of the capture";
    if (!state().captures && of->of_capture) return "an event of a capture";
    if (state().captures) {
      on->in_capture = true;
      state().unjoined.erase(of->on);
      state().unjoined.insert(on);
    }
    perform([on, of] {
      if (of->mark) state().clock.wait(on->at, *of->mark);
    });
    return answer("wait");
  };
  calls.query = [](void* event, std::int32_t* ended) {
    *ended = time_of(*static_cast<Event*>(event)) ? 1 : 0;
    return answer("query");
  };
  calls.elapsed = [](void* from, void* to, double* nanos) {
    const auto* const first = static_cast<Event*>(from);
    const auto* const second = static_cast<Event*>(to);
    const std::optional<double> begin = time_of(*first);
    const std::optional<double> end = time_of(*second);
    if (!begin || !end) return "an event that has not come";
    *nanos = std::round(*end) - std::round(*begin);
    return first->timed && second->timed ? answer("elapsed") : "an event without a time";
  };
}

void add_graphs(BubblescopeGpu& calls) {
  calls.begin_capture = [](void* stream) {
    state().captures = true;
    state().graph.clear();
    static_cast<Stream*>(stream)->in_capture = true;
    state().unjoined.clear();
    return answer("begin_capture");
  };
  calls.end_capture = [](void* stream, void** graph) {
    state().captures = false;
    static_cast<Stream*>(stream)->in_capture = false;
    state().unjoined.erase(static_cast<Stream*>(stream));
    if (!state().unjoined.empty()) return "a stream was not joined to the first";
    return create("end_capture", std::move(state().graph), graph);
  };
  calls.launch_graph = [](void* graph, void*) {
    for (const auto& action : *static_cast<Graph*>(graph)) action();
    ++state().gpu.graph_launches;
    return answer("launch_graph");
  };
  calls.release_graph = release<Graph>;
}

/// Puts work on a stream, visible to the profiler.
void perform_work(void* stream, const SeenWork& work, std::function<void()> action) {
  perform([stream, seen = state().activity.see(work), action = std::move(action)] {
    const std::size_t at = static_cast<Stream*>(stream)->at;
    state().activity.run(seen, at, state().clock, action);
  });
}

const char* spin(const BubblescopeSpin* order, void* stream) {
  if (const char* const error = use(stream)) return error;
  auto* const on = static_cast<Stream*>(stream);
  perform_work(stream, {kBubblescopeKernel, "spin_kernel", 0}, [spin = *order, on] {
    DeviceClock& clock = state().clock;
    if (spin.awaits_stop != 0 && state().gpu.gates_expire) return;
    if (spin.awaits_stop != 0) return clock.block(on->at, spin.stop);
    clock.run(on->at, static_cast<double>(spin.nanos),
              spin.blocks > 0 ? &state().gpu.times.gemms : nullptr);
  });
  return answer("spin");
}

void take_time(void* stream, double nanos, const SlowdownLaw* law) {
  if (nanos > 0) state().clock.run(static_cast<Stream*>(stream)->at, nanos, law, true);
}

/// Divides the work of one multiprocessor by the number that the stream has.
double share_out(void* stream, double nanos) {
  return nanos / static_cast<Stream*>(stream)->multiprocessors;
}

void add_work(BubblescopeGpu& calls) {
  calls.spin = spin;
  calls.copy = [](void* to, const void* from, std::size_t bytes, void* stream) {
    if (const char* const error = use(stream)) return error;
    perform_work(stream, {kBubblescopeCopy, "", bytes}, [=] {
      std::memcpy(to, from, bytes);
      const FakeTimes& times = state().gpu.times;
      const double nanos = times.nanos_per_copy + times.nanos_per_byte * static_cast<double>(bytes);
      if (nanos > 0)
        state().clock.run_beside(static_cast<Stream*>(stream)->at, nanos, times.copies);
    });
    return answer("copy");
  };
  calls.clear = [](void* memory, std::size_t bytes, void* stream) {
    if (const char* const error = use(stream)) return error;
    perform_work(stream, {kBubblescopeClear, "", bytes}, [=] { std::memset(memory, 0, bytes); });
    return answer("clear");
  };
  calls.launch = [](const exec::KernelLaunch* launch, void* stream) {
    if (const char* const error = use(stream)) return error;
    ++state().gpu.launches;
    const std::string name = "kernel_" + std::to_string(launch->arguments.index());
    perform_work(stream, {kBubblescopeKernel, name, 0}, [order = *launch, stream] {
      const FakeTimes& times = state().gpu.times;
      const double entries = static_cast<double>(order.rows) * static_cast<double>(order.columns);
      take_time(stream, share_out(stream, times.nanos_per_entry * entries), &times.kernels);
      if (order.dtype == kBubblescopeFloat32) run_on_host(order);
    });
    return answer("launch");
  };
  calls.create_blas_handle = [](std::int32_t, std::int32_t multiprocessors, std::int32_t,
                                void** made) {
    return create("create_multiplier", multiprocessors, made);
  };
  calls.release_blas_handle = release<std::int32_t>;
  calls.multiply = [](void*, const BubblescopeGemm* gemm, void* stream) {
    if (const char* const error = use(stream)) return error;
    if (gemm->epilogue != kBubblescopeNoEpilogue && !state().gpu.knows_epilogues)
      return "a product with an epilogue that is not known";
    ++state().gpu.launches;
    perform_work(stream, {kBubblescopeKernel, "product", 0}, [order = *gemm, stream] {
      const FakeTimes& times = state().gpu.times;
      const double count = static_cast<double>(order.rows) * order.columns *
                           static_cast<double>(order.k) * order.batch;
      take_time(stream, share_out(stream, times.nanos_per_multiplication * count), &times.gemms);
      if (order.dtype == kBubblescopeFloat32) run_on_host(order);
    });
    return answer("multiply");
  };
  calls.blas_version = [](void*) { return std::int64_t{0}; };
  calls.can_multiply = [](void*, const BubblescopeGemm* gemm, std::int32_t* can) {
    *can = state().gpu.knows_epilogues || gemm->epilogue == kBubblescopeNoEpilogue ? 1 : 0;
    return answer("can_multiply");
  };
}

void note_label(const char* text) {
  FakeGpu& gpu = state().gpu;
  if (text != nullptr) gpu.labels.emplace_back(text);
  gpu.open_labels += text != nullptr ? 1 : -1;
}

void add_activity(BubblescopeGpu& calls) {
  calls.start_activity = [] {
    state().activity.start();
    return answer("start_activity");
  };
  calls.tag = [](std::uint64_t tag) {
    state().activity.tag(tag);
    return answer("tag");
  };
  calls.read_activity = [](BubblescopeTakeActivity take, void* to, std::int64_t* lost) {
    *lost = 0;
    state().activity.read(state().clock, take, to);
    return answer("read_activity");
  };
}

BubblescopeGpu make_calls() {
  BubblescopeGpu calls{};
  calls.label = note_label;
  add_devices(calls);
  add_memory(calls);
  add_streams(calls);
  add_events(calls);
  add_graphs(calls);
  add_work(calls);
  add_activity(calls);
  return calls;
}

}  // namespace

FakeGpu& reset_fake_gpu(std::int32_t devices, std::int32_t multiprocessors) {
  state() = State{};
  BubblescopeDevice device{"Fake GPU", multiprocessors, 90, 13000, std::int64_t{1} << 36, ""};
  state().gpu.devices.assign(static_cast<std::size_t>(devices), device);
  state().gpu.clusters = {multiprocessors};
  return state().gpu;
}

DeviceClock& fake_gpu_clock() { return state().clock; }

const BubblescopeGpu& fake_gpu_calls() {
  static const BubblescopeGpu calls = make_calls();
  return calls;
}

}  // namespace bubblescope::tests
