// Corrects what is impossible in the times of steps: ops of one rank that overlap, and ops that
// begin before their input has ended.
#pragma once

#include <cstddef>
#include <string>

#include "traces/files/trace_format.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The corrections in one step, or in several together.
struct Corrections {
  std::size_t cut = 0;  ///< ops that end earlier, because the next one of their rank has begun
  Nanos max_cut = 0;
  std::size_t trimmed = 0;  ///< ops that begin later, because they waited before
  Nanos max_trimmed = 0;
  double max_fraction = 0;   ///< the largest impossible time, as a fraction of its step
  std::string largest_text;  ///< describes it

  /// Keeps the one that is largest relative to its step.
  void note_largest(Nanos time, const TimeSpan& step, const std::string& text);
  /// Adds those of a further step.
  void add(const Corrections& further);
};

/// A step with its final times.
struct SettledStep {
  MeasuredStep step;
  Corrections corrections = {};
};

/// Adds notes on the corrections. Ops that begin long before their inputs are a doubt or a fault.
Remarks with_corrections(Remarks remarks, const Corrections& corrections);

/// Corrects a whole step, as our own files have it. Lets ops end where the next one of their lane
/// starts, because a lane runs one at a time; so that no idle time is counted twice. Notes the
/// largest such overlap, and the op that begins earliest before its input has ended; its times are
/// used as they are. Steps that broke down are left alone.
SettledStep settle_whole_step(MeasuredStep step);

}  // namespace bubblescope::traces
