// Fits the times of messages to measured steps.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/job_program.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// A direction of messages in one replica.
struct ReplicaLink {
  std::size_t replica = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;

  friend auto operator<=>(const ReplicaLink&, const ReplicaLink&) = default;
};

/// The times of the messages that did not wait for their receiver. Where a link has enough of them,
/// only those count whose receive was posted before their send: a network that buffers has carried
/// the others in part before they show.
std::map<ReplicaLink, std::vector<Nanos>> collect_link_times(std::span<const ReplicatedStep> steps);

/// Sets the latency of messages to the median of those that did not wait for their receiver. A link
/// between two ranks whose median is far from that has an entry of its own, if that is no chance
/// (sim/analysis/link_chance.h). `stages` of the table must be set. Returns a whole sentence about
/// links that seem to differ by chance, and have no entry; nullopt without any.
std::optional<std::string> fit_messages(std::span<const ReplicatedStep> steps, CostTable& table);

}  // namespace bubblescope::inline sim
