// The time of an op on its device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// From the first activity of an op to its last. Collectives and copies on streams that compute
/// nothing of the op run beside it, such as a reduction of gradients beside the last backward: they
/// count only where there is nothing else.
class OpExtent {
 public:
  void add(const TimeSpan& span, std::int64_t stream, bool is_transfer);

  /// nullopt where nothing was added.
  std::optional<TimeSpan> find() const;

 private:
  struct StreamExtent {
    std::int64_t stream = 0;
    TimeSpan span;
    bool computes = false;
  };
  std::vector<StreamExtent> streams_;
};

}  // namespace bubblescope::traces
