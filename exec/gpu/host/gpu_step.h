// Runs the steps of a Program on GPUs: lanes are streams, dependencies are events. The host
// enqueues everything in the Program's order before the step begins; then it only polls.
//
// Times are those of events: a zero event per device, and one before and after every instruction.
// The first step runs while it is enqueued, because it loads kernels and allocates memory. Every
// later step is held back by a gate kernel until it is enqueued, or until a stream is nearly full;
// with graphs, it is one launch of the graph that the second step captured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/gpu_gate.h"
#include "exec/gpu/host/gpu_lanes.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// The step's dealings with other processes; all empty where there are none. What they throw stops
/// the step.
struct GpuRemoteHooks {
  std::function<void()> await_begin;  ///< returns when the step may begin, here as elsewhere
  std::function<StepNews(std::size_t ended)> poll;  ///< told how much has ended here
  std::function<void()>
      abort_messages;  ///< after a stop: aborts the messages whose other end is gone
};

/// Bounds for the moment when a device passed the zero event of a step, on the host's monotonic
/// clock.
struct ZeroTime {
  Nanos earliest = 0;
  Nanos latest = 0;
};

/// The work of the steps.
struct GpuStepWork {
  GpuWork enqueue;
  std::function<void()> begin;  ///< called before each step, while nothing runs; may be empty
  bool uses_graph = false;
  bool loads_kernels = false;  ///< in the first step: loading may wait for a kernel that is blocked
  bool has_tags = false;       ///< tags activities with activity_tag(), except in graphs
  GpuRemoteHooks remote = {};
};

class GpuStep {
 public:
  /// Copies only `work`. Throws Error.
  GpuStep(const GpuMachine& machine, const Program& program, const BackendRequest& request,
          GpuStepWork work);

  /// Runs one step: every instruction of the Program once.
  void run();

  /// Describes the limits of measuring on this machine: "; ..." for each, or nothing.
  std::string describe_limits() const;
  /// Returns the result of a rank in the step that has run.
  RankResult result(std::int32_t rank) const;

  /// When an instruction ran in the last step; empty if it did not.
  std::optional<Span> span_of(InstructionId id) const;

  /// The zero event of the first device in the last step.
  const ZeroTime& zero_time() const { return zero_time_; }

 private:
  enum class State : std::uint8_t { kWaits, kRuns, kEnded };

  void arrange();
  void enqueue_behind_gate();
  void enqueue_one(InstructionId id);
  void launch();
  void begin_with_others();
  void close_gate(std::size_t device);
  void open_gate();
  void expect_held_back() const;
  bool is_blocked_by_fault(InstructionId id) const;
  void do_work(InstructionId id, void* stream);
  void do_injected_work(InstructionId id, void* stream);
  void watch();
  bool poll_remote();
  bool poll_streams();
  std::optional<InstructionId> find_dead() const;
  void stop(AbortReason reason);
  void record_states();
  void drain();
  BlockedAt explain(InstructionId id) const;

  const GpuMachine& machine_;
  const Program& program_;
  const BackendRequest& request_;
  GpuStepWork work_;
  InjectionTable injections_;
  GpuLanes lanes_;
  GpuGate gate_;
  GpuFlag stop_;
  std::vector<GpuHandle> gate_streams_;  ///< [device]
  std::vector<GpuHandle> zero_;          ///< [device]
  GpuHandle graph_;
  GpuHandle graph_end_;
  std::vector<InstructionId> ids_;                  ///< the Program's, in the order of the plan
  std::vector<std::vector<InstructionId>> queues_;  ///< those, per stream
  std::vector<std::size_t> enqueued_;               ///< [stream]: how many are enqueued
  std::vector<std::size_t> ended_;                  ///< [stream]: how many have ended
  std::vector<State> state_;                        ///< [instruction]: at the end of the step
  std::int64_t steps_ = 0;
  ZeroTime zero_time_;
  std::string blocking_tool_;  ///< why steps cannot be held back; empty: they can
  bool gate_is_open_ = false;
  bool is_held_ = false;    ///< all gates of this step are enqueued, and were not open then
  bool in_graph_ = false;   ///< this step
  bool is_broken_ = false;  ///< the device does not answer any more
  AbortReason reason_ = AbortReason::kNone;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope::exec
