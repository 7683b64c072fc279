// Builds one step of a pipeline from its observed ops: first the order, then the times, once the
// clocks of the ranks are aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/rank_numbers.h"
#include "traces/measured/time_span.h"
#include "traces/measured/trim_waiting.h"

namespace bubblescope::traces {

/// A step whose order is known, before its clocks are aligned.
struct DraftStep {
  MeasuredStep step;                           ///< with the times of its compute ops
  std::vector<std::vector<ObservedOp>> lanes;  ///< [rank], in order
  std::vector<ObservedOp> messages = {};
};

/// The corrections in all steps together.
struct Corrections {
  std::size_t cut = 0;
  Nanos max_cut = 0;
  TrimmedWaiting trimmed;
  double max_fraction = 0;   ///< the largest impossible time, as a fraction of its step
  std::string largest_text;  ///< describes it

  /// Keeps the one that is largest relative to its step.
  void note_largest(Nanos time, const TimeSpan& step, const std::string& text);
};

/// From the first start to the last end of the ops ([rank]).
TimeSpan extent_of(const std::vector<std::vector<ObservedOp>>& lanes);

/// Builds the steps of one trace and counts the corrections. Refers to both.
class StepBuilder {
 public:
  StepBuilder(const ObservedTrace& trace, Corrections& corrections)
      : trace_(trace), corrections_(corrections) {}

  /// Builds the order of a step of so many ranks, with everything but the times of messages. Ranks
  /// without a trace get stand-ins. Throws Error where the ops are no whole step of a pipeline.
  DraftStep order(std::string label, StepOps ops, std::int32_t ranks);

  /// Completes the step.
  MeasuredStep finish(DraftStep draft);

 private:
  void cut_overlaps(std::vector<std::vector<ObservedOp>>& lanes, const std::string& label);
  Nanos cut_overlaps(std::vector<ObservedOp>& lane);
  std::string where(const std::string& label) const;
  /// Throws Error where one of the ranks without an op has messages.
  void expect_ops_beside_messages(const std::vector<ObservedOp>& messages,
                                  const StagesByRank& missing, const std::string& label) const;
  /// Throws Error where an op runs twice: the step has several runs of the pipeline.
  void expect_one_pipeline(const std::vector<std::vector<ObservedOp>>& lanes,
                           const std::string& label) const;
  ValidSchedule order_of(const std::vector<std::vector<ObservedOp>>& lanes,
                         const std::string& label) const;
  Program lower_measured(const ValidSchedule& schedule, bool has_late_results,
                         const std::string& label) const;
  void trim(DraftStep& draft);
  void note_early_op(const DraftStep& draft, const std::vector<bool>& start_is_observed);

  const ObservedTrace& trace_;
  Corrections& corrections_;
};

}  // namespace bubblescope::traces
