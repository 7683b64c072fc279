// Checks that a cost table has what a schedule needs.
#include "sim/model/cost_table_checks.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

/// A schedule that is built for its costs has no name yet.
std::string_view name_of(const Schedule& schedule) {
  return schedule.name.empty() ? "the schedule" : std::string_view(schedule.name);
}

}  // namespace

bool runs_kind(const OpKindSet& kinds, OpKind kind) {
  return kinds[static_cast<std::size_t>(kind)];
}

void expect_stages(const CostTable& table, const Schedule& schedule) {
  const auto given = static_cast<std::int32_t>(table.stages.size());
  if (schedule.side_stages > 0) {
    if (given == schedule.stages() && !table.same_stages) return;
    throw Error(
        fmt::format("{}: {}: has {}, but {} has {}, and {} of the output layer behind them; give "
                    "one entry for each",
                    table.file, table.places.counted_by, counted(given, "entry"), name_of(schedule),
                    counted(schedule.stages() - schedule.side_stages, "stage"),
                    counted(schedule.side_stages, "shard")));
  }
  if (given == schedule.stages() || given == schedule.stages_per_pipeline() || table.same_stages)
    return;
  throw Error(fmt::format("{}: {}: has {}, but {} has {} ({} x {}); give one entry per stage",
                          table.file, table.places.counted_by, counted(given, "entry"),
                          name_of(schedule), counted(schedule.stages_per_pipeline(), "stage"),
                          counted(schedule.shape.ranks, "rank"),
                          counted(schedule.shape.chunks, "chunk")));
}

std::vector<OpKindSet> kinds_of_stages(const CostTable& table, const Schedule& schedule) {
  std::vector<OpKindSet> of_stage(schedule.rank_of_stage.size());
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      of_stage[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)] = true;
  std::vector<OpKindSet> of_entry(table.stages.size());
  for (std::size_t stage = 0; stage < of_stage.size(); ++stage) {
    OpKindSet& entry = of_entry[stage % of_entry.size()];
    for (std::size_t kind = 0; kind < entry.size(); ++kind) entry[kind] |= of_stage[stage][kind];
  }
  return of_entry;
}

void expect_durations(const CostTable& table, const Schedule& schedule,
                      const std::vector<OpKindSet>& kinds) {
  for (std::size_t stage = 0; stage < table.stages.size(); ++stage) {
    const StageEntry& entry = table.stages[stage];
    const bool full = runs_kind(kinds[stage], OpKind::kBackward);
    const bool split = runs_kind(kinds[stage], OpKind::kInputGrad);
    const bool moves = runs_kind(kinds[stage], OpKind::kEvict);
    const std::string place = table.places.of_stage(stage);
    if (split && !entry.input_grad)
      throw Error(
          fmt::format("{}: {}lacks 'input_grad' and 'weight_grad', but {} splits "
                      "the backward; add them",
                      table.file, place, name_of(schedule)));
    if (full && !entry.backward && !entry.input_grad)
      throw Error(
          fmt::format("{}: {}lacks 'backward'; add it, or 'input_grad' and "
                      "'weight_grad'",
                      table.file, place));
    const bool by_bandwidth = table.copy.bandwidth_gbps.has_value() && !entry.evict;
    if (moves && by_bandwidth && !entry.activation_bytes)
      throw Error(
          fmt::format("{}: {}lacks 'activation_bytes', which /copy/bandwidth_gbps needs; "
                      "add it, or give 'evict' and 'load'",
                      table.file, place));
  }
  for (std::size_t stage = 0; stage < schedule.recompute_of_stage.size(); ++stage)
    if (schedule.recompute_of_stage[stage] == Recompute::kSelective &&
        !table.stages[stage % table.stages.size()].selective_recompute)
      throw Error(fmt::format(
          "{}: {}lacks 'selective_recompute', but {} recomputes attention "
          "there; add it",
          table.file, table.places.of_stage(stage % table.stages.size()), schedule.name));
}

}  // namespace bubblescope::inline sim
