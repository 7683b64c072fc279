// Takes medians of messages, of all and per link.
#include "sim/analysis/fit_messages.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "sim/analysis/waiting_messages.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMedian = 50;

using LinkTimes = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Nanos>>;

/// The times of messages that did not wait for their receiver, by sender and receiver.
LinkTimes collect_link_times(std::span<const ReplicatedStep> steps) {
  LinkTimes times;
  for (const ReplicatedStep& replicas : steps)
    for (const ObservedStep& step : replicas) {
      const std::vector<bool> waits = find_waiting_messages(step);
      for (InstructionId id = 0; id < step.program.size(); ++id) {
        const Instruction& instruction = step.program.instructions[id];
        if (is_message(instruction) && !waits[id])
          times[{instruction.rank, instruction.peer}].push_back(step.duration_of(id));
      }
    }
  return times;
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

}  // namespace

void fit_messages(std::span<const ReplicatedStep> steps, CostTable& table) {
  constexpr std::size_t kMinMessages = 4;
  const LinkTimes times = collect_link_times(steps);
  std::vector<Nanos> all;
  for (const auto& [link, own] : times) all.insert(all.end(), own.begin(), own.end());
  if (all.empty()) return;
  table.message.latency = quantile(std::move(all), kMedian);
  const Nanos forward = mean_forward(table);
  for (const auto& [link, own] : times) {
    const Nanos time = quantile(own, kMedian);
    if (own.size() < kMinMessages || !is_unusual(time, table.message.latency, forward)) continue;
    LinkEntry& entry = table.links.emplace_back();
    entry.from = link.first;
    entry.to = link.second;
    entry.transfer.latency = time;
  }
}

}  // namespace bubblescope::inline sim
