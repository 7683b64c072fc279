// One step of a pipeline, built from its observed ops: its order first, its times once the clocks
// of the ranks are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/deal_steps.h"
#include "traces/trace_format.h"
#include "traces/trim_waiting.h"
#include "traces/whole_steps.h"

namespace bubblescope {

/// A step whose order is known, before its clocks are.
struct DraftStep {
  MeasuredStep step;                           ///< with the times of its compute ops
  std::vector<std::vector<ObservedOp>> lanes;  ///< [rank], in order
  std::vector<ObservedOp> messages = {};
};

/// What had to be corrected in all steps together.
struct Corrections {
  std::size_t cut = 0;
  Nanos most_cut = 0;
  TrimmedWaiting trimmed;
  double most_part = 0;   ///< the largest thing that cannot have been so, in parts of its step
  std::string part_text;  ///< what it is

  /// Keeps what is the largest part of its step.
  void note_part(Nanos time, const StepExtent& step, const std::string& text);
};

/// From the first start to the last end of the ops ([rank]).
StepExtent extent_of(const std::vector<std::vector<ObservedOp>>& lanes);

/// Builds the steps of one trace, and counts what it corrects in them. Refers to both.
class StepBuilder {
 public:
  StepBuilder(const ObservedTrace& trace, Corrections& corrections)
      : trace_(trace), corrections_(corrections) {}

  /// The order of a step, and its ops as they lie in it: all but the messages' times. Throws Error
  /// where the ops are no whole step of a pipeline.
  DraftStep order(std::string label, StepOps ops, std::int32_t ranks);

  /// The step itself.
  MeasuredStep finish(DraftStep draft);

 private:
  void cut_overlaps(std::vector<std::vector<ObservedOp>>& lanes, const std::string& label);
  Nanos cut_overlaps(std::vector<ObservedOp>& lane);
  std::string where(const std::string& label) const;
  ValidSchedule order_of(const std::vector<std::vector<ObservedOp>>& lanes,
                         const std::string& label) const;
  Program lower_measured(const ValidSchedule& schedule, const std::string& label) const;
  void trim(DraftStep& draft);
  void note_early_op(const DraftStep& draft, const std::vector<bool>& start_is_seen);

  const ObservedTrace& trace_;
  Corrections& corrections_;
};

}  // namespace bubblescope
