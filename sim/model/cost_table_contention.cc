// Converts durations under contention to slowdowns.

#include <fmt/format.h>

#include <algorithm>

#include "sim/ir/error.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

namespace {

constexpr auto kBackwardAt = static_cast<std::size_t>(OpKind::kBackward);
constexpr auto kInputGradAt = static_cast<std::size_t>(OpKind::kInputGrad);
constexpr auto kWeightGradAt = static_cast<std::size_t>(OpKind::kWeightGrad);

/// Returns the duration of a kind without contention.
std::optional<Nanos> uncontended(const StageEntry& entry, OpKind kind) {
  if (kind == OpKind::kBackward) return full_backward(entry);
  if (kind == OpKind::kRecompute && !entry.recompute) return entry.selective_recompute;
  return time_of(entry, time_key(kind));
}

/// A full backward without an entry takes as long as its two halves, as it does without contention.
/// A half without an entry is not slowed.
ContentionEntry with_backward(ContentionEntry times, const StageEntry& entry) {
  std::vector<Nanos> first = times[kInputGradAt];
  std::vector<Nanos> second = times[kWeightGradAt];
  if (!times[kBackwardAt].empty() || (first.empty() && second.empty())) return times;
  if (!entry.input_grad || !entry.weight_grad) return times;
  if (first.empty()) first = {*entry.input_grad};
  if (second.empty()) second = {*entry.weight_grad};
  for (std::size_t at = 0; at < std::max(first.size(), second.size()); ++at)
    times[kBackwardAt].push_back(first[std::min(at, first.size() - 1)] +
                                 second[std::min(at, second.size() - 1)]);
  return times;
}

Slowdown slowdown_of(const std::vector<Nanos>& times, Nanos min_time, const std::string& where) {
  Slowdown slowdown;
  for (const Nanos time : times) {
    if (time < min_time)
      throw Error(fmt::format("{}: {} is less than the {} that it takes alone; correct one of them",
                              where, to_text(time), to_text(min_time)));
    slowdown.push_back(min_time == 0 ? 1
                                     : static_cast<double>(time) / static_cast<double>(min_time));
  }
  return slowdown;
}

/// The slowdown of the schedule's copies, which go to other ranks or to the host.
Slowdown copy_slowdown(const CostTable& table, const Schedule& schedule) {
  if (schedule.offload_target_of_rank.empty()) return {};
  bool to_rank = false;
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
    to_rank = to_rank || offloads_to_rank(schedule, rank);
  return to_rank ? table.copy_to_rank.value_or(table.copy).slowdown : table.copy.slowdown;
}

}  // namespace

std::optional<Contention> make_contention(const CostTable& table, const Schedule& schedule) {
  const bool any = std::any_of(table.stages.begin(), table.stages.end(),
                               [](const StageEntry& entry) { return entry.contended; });
  const Slowdown copies = copy_slowdown(table, schedule);
  if (!any && table.contended_message.empty() && copies.empty()) return {};
  Contention made;
  made.ranks_per_device = table.ranks_per_device.value_or(schedule.shape.ranks);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const std::size_t at = static_cast<std::size_t>(stage) % table.stages.size();
    const StageEntry& entry = table.stages[at];
    auto& slowdowns = made.stages.emplace_back();
    const ContentionEntry times = with_backward(entry.contended.value_or(ContentionEntry{}), entry);
    for (std::size_t kind = 0; kind < times.size(); ++kind)
      if (const std::optional<Nanos> min_time = uncontended(entry, static_cast<OpKind>(kind)))
        slowdowns[kind] = slowdown_of(times[kind], *min_time,
                                      fmt::format("{}: {}/{}/contended/{}", table.file,
                                                  table.places.objects, at, kCostKeys[kind]));
    auto& recompute = slowdowns[static_cast<std::size_t>(OpKind::kRecompute)];
    if (recompute.empty()) recompute = slowdowns[static_cast<std::size_t>(OpKind::kForward)];
  }
  made.message = slowdown_of(table.contended_message, static_cast<Nanos>(table.message.nanos()),
                             table.file + ": /message/contended");
  made.copy = copies;
  made.kind_weights = table.kind_weights;
  return made;
}

}  // namespace bubblescope::inline sim
