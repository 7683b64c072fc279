// Sets and looks up values of a stage.
#include "sim/model/stage_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bubblescope::inline sim {

std::int64_t CostList::of_sequence(std::int32_t microbatch) const {
  const std::int64_t count = std::max(slices, 1);
  const auto first = values.begin() + std::int64_t{microbatches == 0 ? 0 : microbatch} * count;
  return std::accumulate(first, first + count, std::int64_t{0});
}

std::int64_t CostList::mean() const {
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return std::llround(sum / std::max(microbatches, 1));
}

std::int64_t CostList::largest() const {
  std::int64_t largest = 0;
  for (std::int32_t microbatch = 0; microbatch < std::max(microbatches, 1); ++microbatch)
    largest = std::max(largest, of_sequence(microbatch));
  return largest;
}

void set_value(StageEntry& entry, CostKey key, std::int64_t value) {
  if (const auto member = stage_value(key).member) {
    entry.*member = value;
  } else if (key == CostKey::kForward) {
    entry.forward = value;
  } else {
    const MemoryDelta bytes = entry.activation_bytes.value_or(MemoryDelta{0, 0, 0});
    const Bytes saved = key == CostKey::kSaved ? value : bytes.forward;
    const Bytes released = key == CostKey::kReleasedByInputGrad ? value : -bytes.input_grad;
    entry.activation_bytes = MemoryDelta{saved, -released, released - saved};
  }
}

std::optional<Nanos> time_of(const StageEntry& entry, CostKey key) {
  if (key == CostKey::kForward) return entry.forward;
  return entry.*stage_value(key).member;
}

}  // namespace bubblescope::inline sim
