// Takes medians of messages, of all and per link.
#include "sim/analysis/fit_messages.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/link_chance.h"
#include "sim/analysis/waiting_messages.h"
#include "sim/ir/counted.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMinMessages = 4;  ///< of a link

/// Whether the receive of a message was posted after its send; false where no posts are known.
bool is_received_late(const ObservedStep& step, InstructionId id) {
  const Instruction& message = step.program.instructions[id];
  std::optional<Nanos> sent;
  std::optional<Nanos> received;
  for (const InstructionId awaited : step.program.dependencies_of(id)) {
    const Instruction& one = step.program.instructions[awaited];
    if (one.role != Role::kPost) continue;
    (one.rank == message.rank ? sent : received) = step.timeline.end[awaited];
  }
  return sent && received && *received > *sent;
}

/// Joins the times of all replicas, by sender and receiver.
std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Nanos>> join_replicas(
    const std::map<ReplicaLink, std::vector<Nanos>>& times) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Nanos>> joined;
  for (const auto& [link, own] : times) {
    std::vector<Nanos>& all = joined[{link.from, link.to}];
    all.insert(all.end(), own.begin(), own.end());
  }
  return joined;
}

/// Whether a link deserves an entry of its own: its time must be twice the usual one or half of it,
/// and differ by as much as shows beside a forward.
bool is_unusual(Nanos time, Nanos usual, Nanos forward) {
  constexpr double kOfForward = 0.02;
  const auto difference = static_cast<double>(std::abs(time - usual));
  return (time >= 2 * usual || usual >= 2 * time) &&
         difference > kOfForward * static_cast<double>(forward);
}

Nanos mean_forward(const CostTable& table) {
  Nanos sum = 0;
  for (const StageEntry& stage : table.stages) sum += stage.forward;
  return sum / static_cast<Nanos>(table.stages.size());
}

/// Says that links have the usual time although their medians are far from it.
std::optional<std::string> describe_links_by_chance(const std::vector<LinkEntry>& links,
                                                    Nanos usual) {
  if (links.empty()) return {};
  const LinkEntry& first = links.front();
  const std::string others =
      links.size() == 1 ? "" : " (" + counted(links.size() - 1, "more link") + " likewise)";
  return "the median message from rank " + std::to_string(first.from) + " to rank " +
         std::to_string(first.to) + " took " + to_text(first.transfer.latency) + " for " +
         to_text(usual) + " elsewhere" + others +
         ", but not by more than messages differ by chance: the costs have one time for both";
}

}  // namespace

std::map<ReplicaLink, std::vector<Nanos>> collect_link_times(
    std::span<const ReplicatedStep> steps) {
  std::map<ReplicaLink, std::vector<Nanos>> times;
  std::map<ReplicaLink, std::vector<Nanos>> certain;
  for (const ReplicatedStep& replicas : steps)
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      const ObservedStep& step = replicas[replica];
      const std::vector<bool> waits = find_waiting_messages(step);
      for (InstructionId id = 0; id < step.program.size(); ++id) {
        const Instruction& one = step.program.instructions[id];
        if (!is_message(one) || waits[id]) continue;
        const ReplicaLink link{replica, one.rank, one.peer};
        times[link].push_back(step.duration_of(id));
        if (!is_received_late(step, id)) certain[link].push_back(step.duration_of(id));
      }
    }
  for (auto& [link, own] : certain)
    if (own.size() >= kMinMessages) times[link] = std::move(own);
  return times;
}

std::optional<std::string> fit_messages(std::span<const ReplicatedStep> steps, CostTable& table) {
  const auto times = join_replicas(collect_link_times(steps));
  std::vector<Nanos> all;
  for (const auto& [link, own] : times) all.insert(all.end(), own.begin(), own.end());
  if (all.empty()) return {};
  table.message.latency = quantile(all, 50);
  std::vector<LinkEntry> by_chance;
  const Nanos forward = mean_forward(table);
  for (const auto& [link, own] : times) {
    const Nanos time = quantile(own, 50);
    if (own.size() < kMinMessages || !is_unusual(time, table.message.latency, forward)) continue;
    LinkEntry entry;
    entry.from = link.first;
    entry.to = link.second;
    entry.transfer.latency = time;
    (differs_beyond_chance(own, all, times.size()) ? table.links : by_chance).push_back(entry);
  }
  return describe_links_by_chance(by_chance, table.message.latency);
}

}  // namespace bubblescope::inline sim
