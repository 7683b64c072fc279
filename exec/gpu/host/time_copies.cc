// Times copies with events.
#include "exec/gpu/host/time_copies.h"

#include <iterator>
#include <utility>

#include "exec/gpu/host/gpu_environment.h"
#include "exec/gpu/host/gpu_gate.h"
#include "exec/gpu/host/gpu_machine.h"
#include "sim/ir/quantile.h"

namespace bubblescope::exec {

namespace {

constexpr Bytes kSizes[] = {std::int64_t{1} << 12, std::int64_t{1} << 16, std::int64_t{1} << 18,
                            std::int64_t{1} << 20, std::int64_t{1} << 22, std::int64_t{1} << 24,
                            std::int64_t{1} << 26};
constexpr int kWarmups = 2;
constexpr int kRepetitions = 9;

enum class CopyTo : std::uint8_t { kRank1, kHost };

/// Times copies from rank 0 on a stream of its device.
class CopyTimer {
 public:
  CopyTimer(const GpuMachine& machine, Bytes max_bytes, CopyTo target)
      : gpu_(machine.gpu()),
        device_(machine.place(0).device),
        from_(gpu_.allocate(device_, static_cast<std::size_t>(max_bytes))),
        to_(target == CopyTo::kHost
                ? gpu_.allocate_on_host(static_cast<std::size_t>(max_bytes))
                : gpu_.allocate(machine.place(1).device, static_cast<std::size_t>(max_bytes))),
        stream_(gpu_.create_stream(device_, nullptr)),
        begin_(gpu_.create_event(device_, EventUse::kTimed)),
        end_(gpu_.create_event(device_, EventUse::kTimed)),
        gate_(gpu_) {}

  Nanos time(Bytes bytes) {
    std::vector<Nanos> times;
    for (int at = 0; at < kWarmups + kRepetitions; ++at) {
      const Nanos time = time_once(bytes, at == 0);
      if (at >= kWarmups) times.push_back(time);
    }
    return quantile(std::move(times), 50);
  }

 private:
  /// Opens the gate even if enqueueing throws: work behind a closed gate would never end.
  class GateOpener {
   public:
    explicit GateOpener(GpuGate& gate) : gate_(gate) {}
    ~GateOpener() { gate_.open(); }
    GateOpener(const GateOpener&) = delete;
    GateOpener& operator=(const GateOpener&) = delete;

   private:
    GpuGate& gate_;
  };

  /// A gate holds the copy back until everything is enqueued. In the first run the gate is open,
  /// because loading kernels must not wait for it.
  Nanos time_once(Bytes bytes, bool open) {
    {
      const GateOpener opened(gate_);
      const bool holds = !open && blocking_tool_.empty();
      holds ? gate_.close() : gate_.open();
      gate_.hold(stream_);
      gpu_.record(begin_, stream_);
      gpu_.copy(to_.get(), from_.get(), static_cast<std::size_t>(bytes), stream_.get());
      gpu_.record(end_, stream_);
      if (holds) gate_.expect_held_back(begin_, "while a copy was enqueued");
    }
    gpu_.await_device(device_);
    return gpu_.elapsed(begin_, end_);
  }

  const GpuRuntime& gpu_;
  std::int32_t device_;
  GpuHandle from_;
  GpuHandle to_;
  GpuHandle stream_;
  GpuHandle begin_;
  GpuHandle end_;
  GpuGate gate_;
  std::string blocking_tool_ = find_blocking_tool();
};

std::vector<MessageTime> time_all(const GpuMachine& machine, CopyTo to) {
  CopyTimer watch(machine, *std::rbegin(kSizes), to);
  std::vector<MessageTime> times;
  for (const Bytes bytes : kSizes) times.push_back({bytes, watch.time(bytes)});
  return times;
}

}  // namespace

std::vector<MessageTime> time_copies(const BubblescopeGpu& calls, std::int32_t ranks, Share share) {
  return time_all(GpuMachine(calls, ranks, share), CopyTo::kRank1);
}

std::vector<MessageTime> time_host_copies(const BubblescopeGpu& calls, std::int32_t ranks,
                                          Share share) {
  return time_all(GpuMachine(calls, ranks, share), CopyTo::kHost);
}

}  // namespace bubblescope::exec
