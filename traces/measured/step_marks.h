// The steps that a profile marks, by time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

class StepMarks {
 public:
  StepMarks() = default;
  explicit StepMarks(const ChromeEvents& events);
  /// The steps that one process marked.
  StepMarks(const ChromeEvents& events, const std::string& process);

  const std::vector<ProfiledEvent>& marks() const { return marks_; }

  /// When the last step that begins before `time` does; nullopt if none does.
  std::optional<Nanos> start_before(Nanos time) const;

  /// Returns the number of the step that contains `time`; nullopt outside all steps.
  std::optional<std::int64_t> step_at(Nanos time) const;

 private:
  const ProfiledEvent* last_before(Nanos time) const;

  std::vector<ProfiledEvent> marks_;  ///< by start
};

/// Gives ops the steps that ranges around them state, if all ops of all ranks are within such
/// ranges; otherwise the ranges, which may be of one rank only, are removed.
ObservedTrace use_step_marks(ObservedTrace trace);

}  // namespace bubblescope::traces
