// The host ranges of ops in an Nsight Systems recording, and their steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/measured/device_contradictions.h"
#include "traces/measured/nsys_recording.h"
#include "traces/measured/op_names.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

/// The host range of an op, or of two overlapped ones.
struct OpRange {
  std::int64_t thread = 0;
  TimeSpan host;
  NamedOp named;
  std::optional<Op> second = {};  ///< the backward of a pair
  TimeSpan received = {};         ///< the call that received its input; empty where unknown
  std::int64_t step = 0;
  bool step_is_counted = false;  ///< no name or range states `step`
  bool has_step = true;
  std::optional<std::int64_t> mark = {};  ///< the number of the step around it
};

/// A range around a step, such as "iteration 12".
struct StepRange {
  TimeSpan host;
  std::int64_t number = 0;
};

/// The ranges of a process that mark its steps; empty if they overlap, repeat a number, or do not
/// contain all of its ops. Sets the marks of the ops.
std::vector<StepRange> mark_steps(const NsysRecording& recording,
                                  const std::vector<HostRange>& ranges, std::vector<OpRange>& ops);

inline bool is_unnumbered(const OpRange& range) { return !range.named.has_microbatch; }

bool is_same_op(const OpRange& left, const OpRange& right);

/// Backwards are input gradients where weight gradients are named, too.
void set_kinds(std::vector<OpRange>& ops);

/// DeepSpeed gives ranges to all forwards, but only on the last stage to backwards. If a process
/// has forwards alone, its backwards are the stretches of launches by other threads (the autograd
/// engine's) that no forward and no message of the forwards' thread interrupts. Adds them if there
/// are as many as forwards; otherwise returns false.
bool find_unnamed_backwards(const NsysRecording& recording, std::int64_t process,
                            std::vector<OpRange>& ops);

/// Counts ops of a kind over the whole file; steps follow when all ranks are known.
void count_unnumbered(std::vector<OpRange>& ops);

/// Counts steps (counted_steps.h). Returns false where some ops run more often than others, unless
/// all steps are whole.
bool count_occurrences(std::vector<OpRange>& ops);

/// The compute ops, by start. The steps of unnumbered ops are assigned later: until then, a step
/// ends wherever every micro-batch has come back.
std::vector<OpSpan> find_op_spans(const std::vector<OpRange>& ops);

}  // namespace bubblescope::traces
