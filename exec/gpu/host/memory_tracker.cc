// Sums up changes in the order of time.
#include "exec/gpu/host/memory_tracker.h"

#include <algorithm>

namespace bubblescope::exec {

namespace {

struct Moment {
  Nanos time = 0;
  std::int32_t rank = 0;
  Bytes bytes = 0;
};

}  // namespace

MemoryTracker::MemoryTracker(InstructionId instructions, std::int32_t ranks)
    : changes_(instructions), peaks_(static_cast<std::size_t>(ranks), 0) {}

void MemoryTracker::change(InstructionId id, std::int32_t rank, Bytes bytes, Bytes during) {
  std::vector<Change>& changes = changes_[id];
  const auto known = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& change) { return change.rank == rank; });
  if (known != changes.end())
    known->bytes += bytes;
  else
    changes.push_back({rank, bytes, during});
}

/// Changes at the same time are applied in the Program's order.
void MemoryTracker::note_step(const Times& times) {
  std::vector<Moment> moments;
  for (InstructionId id = 0; id < changes_.size(); ++id) {
    if (changes_[id].empty()) continue;
    const std::optional<Span> span = times ? times(id) : Span{id, 0, 0};
    if (!span) continue;
    for (const Change& change : changes_[id]) {
      const Bytes taken = std::max({change.during, change.bytes, Bytes{0}});
      moments.push_back({span->start, change.rank, taken});
      moments.push_back({span->end, change.rank, change.bytes - taken});
    }
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& left, const Moment& right) { return left.time < right.time; });
  std::vector<Bytes> held(peaks_.size(), 0);
  for (const Moment& moment : moments) {
    const auto rank = static_cast<std::size_t>(moment.rank);
    held[rank] += moment.bytes;
    peaks_[rank] = std::max(peaks_[rank], held[rank]);
  }
}

}  // namespace bubblescope::exec
