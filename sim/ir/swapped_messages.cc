// Compares the order in which the messages between two ranks are sent with that of their receives.
#include "sim/ir/swapped_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/ir/depend.h"

namespace bubblescope::inline sim {

namespace {

struct Posted {
  Op op;
  Value value;
  std::int32_t position;
};

/// The messages from one rank to another, in the order of their posted sends and receives.
struct Channel {
  std::vector<Posted> sends;
  std::vector<Posted> receives;
};

using Channels = std::map<std::pair<std::int32_t, std::int32_t>, Channel>;

Channels collect(const Schedule& schedule, const std::vector<RankOrder>& posted) {
  Channels channels;
  if (!schedule.graph.is_chain()) return channels;  // its lists are ours, with tags
  for (const RankOrder& cells : posted)
    for (std::size_t at = 0; at < cells.size(); ++at) {
      if (!is_message(cells[at].kind)) continue;
      const auto value = find_carried_value(schedule, cells[at]);
      if (!value) continue;
      const std::int32_t from = schedule.rank_of(value->stage, value->microbatch);
      const std::int32_t to =
          schedule.rank_of(*receiving_stage(schedule, *value), value->microbatch);
      Channel& channel = channels[{from, to}];
      (is_send(cells[at].kind) ? channel.sends : channel.receives)
          .push_back({cells[at], *value, static_cast<std::int32_t>(at)});
    }
  return channels;
}

}  // namespace

Problems find_swapped_messages(const Schedule& schedule, const std::vector<RankOrder>& posted) {
  const ValueIndex index(schedule);
  Problems problems;
  for (const auto& [ranks, channel] : collect(schedule, posted))
    for (std::size_t at = 0; at < std::min(channel.sends.size(), channel.receives.size()); ++at) {
      const Posted& sent = channel.sends[at];
      const Posted& received = channel.receives[at];
      if (index(sent.value) == index(received.value)) continue;
      problems.push_back({ranks.second, received.position,
                          to_string(received.op) + " is message " + std::to_string(at) +
                              " expected from rank " + std::to_string(ranks.first) +
                              ", which sends " + to_string(sent.op) + " there",
                          "order both the same"});
      break;
    }
  return problems;
}

}  // namespace bubblescope::inline sim
