// Makes entries of stages from their kinds.
#include "sim/model/stage_kinds.h"

#include <algorithm>
#include <optional>

#include "sim/model/restage.h"

namespace bubblescope::inline sim {

namespace {

using Entries = std::vector<StageEntry>;

/// The mean of what `find` reads from all entries.
template <class Find>
std::int64_t mean_of(const Entries& entries, Find find) {
  std::int64_t sum = 0;
  for (const StageEntry& entry : entries) sum += find(entry);
  return sum / static_cast<std::int64_t>(entries.size());
}

template <class Member>
bool all_have(const Entries& entries, Member member) {
  return std::all_of(entries.begin(), entries.end(),
                     [&](const StageEntry& entry) { return (entry.*member).has_value(); });
}

std::optional<std::int64_t> mean_member(const Entries& entries,
                                        std::optional<std::int64_t> StageEntry::*member) {
  if (!all_have(entries, member)) return std::nullopt;
  return mean_of(entries, [&](const StageEntry& entry) { return *(entry.*member); });
}

std::optional<MemoryDelta> mean_activations(const Entries& entries) {
  if (!all_have(entries, &StageEntry::activation_bytes)) return std::nullopt;
  const Bytes saved =
      mean_of(entries, [](const StageEntry& entry) { return entry.activation_bytes->forward; });
  const Bytes change =
      mean_of(entries, [](const StageEntry& entry) { return entry.activation_bytes->input_grad; });
  return MemoryDelta{saved, change, -saved - change};
}

/// The kinds and numbers of busy ranks that all entries have.
std::optional<ContentionEntry> mean_contention(const Entries& entries) {
  if (!all_have(entries, &StageEntry::contended)) return std::nullopt;
  ContentionEntry mean = *entries[0].contended;
  for (std::size_t kind = 0; kind < mean.size(); ++kind) {
    for (const StageEntry& entry : entries)
      mean[kind].resize(std::min(mean[kind].size(), (*entry.contended)[kind].size()));
    for (std::size_t busy = 0; busy < mean[kind].size(); ++busy)
      mean[kind][busy] =
          mean_of(entries, [&](const StageEntry& entry) { return (*entry.contended)[kind][busy]; });
  }
  return mean;
}

StageEntry mean_stage(const Entries& entries) {
  StageEntry mean;
  mean.forward = mean_of(entries, [](const StageEntry& entry) { return entry.forward; });
  for (const auto member :
       {&StageEntry::backward, &StageEntry::input_grad, &StageEntry::weight_grad,
        &StageEntry::recompute, &StageEntry::selective_recompute, &StageEntry::overlapped_pair,
        &StageEntry::evict, &StageEntry::load, &StageEntry::evict_to_rank,
        &StageEntry::load_from_rank, &StageEntry::weight_bytes, &StageEntry::checkpoint,
        &StageEntry::selective_checkpoint})
    mean.*member = mean_member(entries, member);
  for (const auto member : {&UpdateCost::optimizer, &UpdateCost::reduce_grad, &UpdateCost::unshard})
    mean.update.*member =
        mean_of(entries, [&](const StageEntry& entry) { return entry.update.*member; });
  mean.activation_bytes = mean_activations(entries);
  mean.contended = mean_contention(entries);
  return mean;
}

}  // namespace

std::vector<StageEntry> make_stage_kinds(const std::vector<StageEntry>& stages) {
  if (stages.size() < 3) return {};
  return {stages.front(), mean_stage({stages.begin() + 1, stages.end() - 1}), stages.back()};
}

CostTable fit_stages(CostTable table, const Schedule& schedule) {
  const auto stages = static_cast<std::size_t>(schedule.stages_per_pipeline());
  const bool has_all = table.stages.size() == stages ||
                       table.stages.size() == static_cast<std::size_t>(schedule.stages());
  if (table.stage_kinds.empty() || has_all || stages < 2) return restage(table, schedule);
  table.stages.assign(stages, table.stage_kinds[1]);
  table.stages.front() = table.stage_kinds[0];
  table.stages.back() = table.stage_kinds[2];
  return table;
}

}  // namespace bubblescope::inline sim
