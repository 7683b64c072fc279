// Steps of a Program on GPUs: lanes are streams, dependencies are events. Everything is enqueued in
// the Program's order before the step begins; then the host only looks on.
//
// What is measured is the time between events: one zero per device, and a pair around every
// instruction. The first step runs while it is enqueued, because kernels are loaded and memory is
// taken in it; every later one stands behind a gate until it is enqueued (or until a stream is
// nearly full), or is one launch of a graph that is captured in the second step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_lanes.h"
#include "exec/runtime/backend.h"

namespace bubblescope {

/// The step's dealings with other processes; all empty where there are none. What they throw stops
/// the step.
struct GpuStepOutside {
  std::function<void()> await_begin;  ///< returns when the step may begin, here as elsewhere
  std::function<StepNews(std::size_t ended)> listen;  ///< told how much has ended here
  std::function<void()> let_go;  ///< after a stop: ends the messages that nobody will answer
};

/// When a device passed the zero of a step, on the host's monotonic clock: between the two.
struct ZeroTime {
  Nanos earliest = 0;
  Nanos latest = 0;
};

/// What the steps do.
struct GpuStepWork {
  GpuWork enqueue;
  std::function<void()> begin;  ///< before each step, while nothing runs; may be empty
  bool uses_graph = false;
  bool loads_kernels = false;  ///< in the first step: loading may wait for a kernel that stands
  bool has_tags = false;       ///< activity_tag() on what instructions launch outside of graphs
  GpuStepOutside outside = {};
};

class GpuStep {
 public:
  /// Nothing is copied but `work`. Throws Error.
  GpuStep(const GpuMachine& machine, const Program& program, const BackendRequest& request,
          GpuStepWork work);

  /// Runs one step: every instruction of the Program once.
  void run();

  /// What became of a rank in the step that has run.
  RankResult result(std::int32_t rank) const;

  /// When an instruction ran in the step that has run; empty: it did not.
  std::optional<Span> span_of(InstructionId id) const;

  /// Of the first device, in the step that has run.
  const ZeroTime& zero_time() const { return zero_time_; }

 private:
  enum class State : std::uint8_t { kWaits, kRuns, kEnded };

  void arrange();
  void enqueue_behind_gate();
  void enqueue_one(InstructionId id);
  void launch();
  void begin_together();
  void open_gate();
  bool stands(InstructionId id) const;
  void do_work(InstructionId id, void* stream);
  void do_injected_work(InstructionId id, void* stream);
  void watch();
  bool hears();
  bool look();
  std::optional<InstructionId> find_dead() const;
  void stop(Stop reason);
  void note_states();
  void drain();
  Stand explain(InstructionId id) const;

  const GpuMachine& machine_;
  const Program& program_;
  const BackendRequest& request_;
  GpuStepWork work_;
  InjectionTable injections_;
  GpuLanes lanes_;
  GpuFlag gate_;
  GpuFlag stop_;
  std::vector<GpuHandle> gate_streams_;  ///< [device]
  std::vector<GpuHandle> zero_;          ///< [device]
  GpuHandle graph_;
  GpuHandle graph_end_;
  std::vector<InstructionId> ids_;                  ///< the Program's, in the order of the plan
  std::vector<std::vector<InstructionId>> queues_;  ///< those, per stream
  std::vector<std::size_t> enqueued_;               ///< per stream, how many of them
  std::vector<std::size_t> ended_;                  ///< per stream, how many of them have ended
  std::vector<State> state_;                        ///< per instruction, as the step ended
  std::int64_t steps_ = 0;
  ZeroTime zero_time_;
  bool gate_is_open_ = false;
  bool in_graph_ = false;   ///< this step
  bool is_broken_ = false;  ///< the device answers no more
  Stop reason_ = Stop::kNone;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope
