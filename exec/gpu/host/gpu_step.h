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

#include "exec/gpu/host/gpu_lanes.h"
#include "exec/gpu/host/step_faults.h"
#include "exec/gpu/host/step_progress.h"
#include "exec/gpu/host/step_start.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// Calls by which a step exchanges its state with other processes; all are empty in a single
/// process. An exception that one throws aborts the step.
struct GpuRemoteHooks {
  std::function<void()> await_begin;  ///< returns when the step may begin, here as elsewhere
  std::function<PeerUpdate(std::size_t ended)> poll;  ///< gets the number that has ended here
  std::function<void()>
      abort_messages;  ///< after an abort: aborts the messages whose other end is gone
};

/// The work of the steps.
struct GpuStepWork {
  GpuWork enqueue;
  std::function<void()> begin = {};  ///< called before each step, while nothing runs; may be empty
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

  /// Whether the step that has run failed because it could not be captured or launched as a graph.
  bool failed_as_graph() const { return failed_as_graph_; }

  /// Returns the zero event of the first device in the last step.
  const ZeroTime& zero_time() const { return start_.zero_time(); }

 private:
  void begin();
  void enqueue_behind_gate();
  void enqueue_one(InstructionId id);
  void launch_graph();
  void begin_with_others();
  void open_gate();
  void watch();
  bool poll_remote();
  bool has_ended();
  void expect_all_alive();
  void abort(AbortReason reason);
  void drain();

  const GpuMachine& machine_;
  const Program& program_;
  const BackendRequest& request_;
  GpuStepWork work_;
  StepFaults faults_;
  GpuLanes lanes_;
  StepStart start_;
  StepProgress progress_;
  std::vector<std::string> names_;  ///< of instructions, for profilers
  GpuHandle graph_;
  GpuHandle graph_end_;
  std::int64_t steps_ = 0;
  std::string blocking_tool_;  ///< why steps cannot be held back; empty: they can
  bool in_graph_ = false;      ///< this step
  bool failed_as_graph_ = false;
  bool is_broken_ = false;  ///< the device does not answer any more
  AbortReason reason_ = AbortReason::kNone;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope::exec
