// Ranges that name an op without its number, in a recording where other ranges have numbers.
//
// Those with numbers are the ops. A runtime's own names around or within them, such as
// forward_step, are the same ops. Others are left out, and a doubt: they may be ops whose
// number was lost, or another kind of work, such as an evaluation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The compute ranges of one process.
class UnnumberedRanges {
 public:
  void add(const TimeSpan& span, bool is_numbered, const std::string& name);

  bool any_numbered() const { return !numbered_.empty(); }

  /// Describes those outside of all numbered ones; nullopt where there are none.
  std::optional<std::string> describe();

 private:
  struct Named {
    TimeSpan span;
    std::string name;
  };

  std::vector<TimeSpan> numbered_;
  std::vector<Named> unnumbered_;
};

}  // namespace bubblescope::traces
