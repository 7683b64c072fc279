// Cuts and joins stages.
#include "sim/model/restage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/ir/range.h"
#include "sim/model/stage_kinds.h"

namespace bubblescope::inline sim {

namespace {

/// A quantity of all stages as a function of the position in the model, from 0 to 1.
class Spread {
 public:
  void add(std::int64_t of_stage) {
    sums_.push_back(add_in_range(sums_.back(), of_stage, "the stages of the cost file"));
  }

  /// The share of part `at` of `parts`. The shares of all parts add up to the whole.
  std::int64_t share(std::size_t at, std::size_t parts) const {
    return sum_until(at + 1, parts) - sum_until(at, parts);
  }

 private:
  std::int64_t sum_until(std::size_t at, std::size_t parts) const {
    const std::size_t stages = sums_.size() - 1;
    const std::size_t whole = at * stages / parts;
    if (whole == stages) return sums_.back();
    const double rest = static_cast<double>(at * stages % parts) / static_cast<double>(parts);
    return sums_[whole] + std::llround(static_cast<double>(sums_[whole + 1] - sums_[whole]) * rest);
  }

  std::vector<std::int64_t> sums_{0};
};

using Stages = std::vector<StageEntry>;

/// Divides what all stages have; what one of them lacks stays empty.
template <class Get, class Set>
void divide(const Stages& from, Stages& to, Get get, Set set) {
  Spread spread;
  for (const StageEntry& stage : from) {
    const auto value = get(stage);
    if (!value) return;
    spread.add(*value);
  }
  for (std::size_t at = 0; at < to.size(); ++at) set(to[at], spread.share(at, to.size()));
}

void divide(const Stages& from, Stages& to, std::optional<std::int64_t> StageEntry::*member) {
  divide(
      from, to, [=](const StageEntry& stage) { return stage.*member; },
      [=](StageEntry& stage, std::int64_t share) { stage.*member = share; });
}

template <class Part>
void divide_part(const Stages& from, Stages& to, Part part) {
  divide(
      from, to, [&](const StageEntry& stage) { return std::optional<std::int64_t>(part(stage)); },
      [&](StageEntry& stage, std::int64_t share) { part(stage) = share; });
}

void divide_activations(const Stages& from, Stages& to) {
  for (const StageEntry& stage : from)
    if (!stage.activation_bytes) return;
  for (StageEntry& stage : to) stage.activation_bytes = MemoryDelta{};
  divide_part(
      from, to, [](auto& stage) -> auto& { return stage.activation_bytes->forward; });
  divide_part(
      from, to, [](auto& stage) -> auto& { return stage.activation_bytes->input_grad; });
  for (StageEntry& stage : to) {
    MemoryDelta& bytes = *stage.activation_bytes;
    bytes.weight_grad = -bytes.forward - bytes.input_grad;
  }
}

/// The members that are divided besides forwards, full backwards and activations.
constexpr std::array kMembers{
    &StageEntry::input_grad,    &StageEntry::weight_grad,         &StageEntry::recompute,
    &StageEntry::evict,         &StageEntry::selective_recompute, &StageEntry::load,
    &StageEntry::evict_to_rank, &StageEntry::load_from_rank,      &StageEntry::weight_bytes,
    &StageEntry::checkpoint,    &StageEntry::selective_checkpoint};
constexpr std::array kUpdates{&UpdateCost::optimizer, &UpdateCost::reduce_grad,
                              &UpdateCost::unshard};

Stages spread_evenly(const Stages& from, std::size_t count) {
  Stages to(count);
  divide_part(
      from, to, [](auto& stage) -> auto& { return stage.forward; });
  divide(from, to, full_backward,
         [](StageEntry& stage, std::int64_t share) { stage.backward = share; });
  for (const auto member : kMembers) divide(from, to, member);
  for (const auto member : kUpdates)
    divide_part(
        from, to, [=](auto& stage) -> auto& { return stage.update.*member; });
  divide_activations(from, to);
  return to;
}

/// A stage with `factor` times the layers.
StageEntry scale(const StageEntry& stage, double factor) {
  const auto scaled = [factor](std::int64_t value) {
    return static_cast<std::int64_t>(std::llround(factor * static_cast<double>(value)));
  };
  StageEntry to;
  to.forward = scaled(stage.forward);
  if (const auto backward = full_backward(stage)) to.backward = scaled(*backward);
  for (const auto member : kMembers)
    if (stage.*member) to.*member = scaled(*(stage.*member));
  for (const auto member : kUpdates) to.update.*member = scaled(stage.update.*member);
  if (stage.activation_bytes) {
    to.activation_bytes = MemoryDelta{scaled(stage.activation_bytes->forward),
                                      scaled(stage.activation_bytes->input_grad), 0};
    to.activation_bytes->weight_grad =
        -to.activation_bytes->forward - to.activation_bytes->input_grad;
  }
  return to;
}

Stages scale_ends(const Stages& from, std::size_t count) {
  const Stages kinds = make_stage_kinds(from);
  const double factor = static_cast<double>(from.size()) / static_cast<double>(count);
  Stages to(count, scale(kinds[1], factor));
  to.front() = scale(kinds[0], factor);
  to.back() = scale(kinds[2], factor);
  return to;
}

/// Adds `sign` times the work by which an end exceeds the stages between.
void add_excess(StageEntry& to, const StageEntry& end, const StageEntry& middle,
                std::int64_t sign) {
  const auto excess = [sign](std::int64_t own, std::int64_t others) {
    return sign * std::max<std::int64_t>(0, own - others);
  };
  to.forward += excess(end.forward, middle.forward);
  if (to.backward && full_backward(end) && full_backward(middle))
    *to.backward += excess(*full_backward(end), *full_backward(middle));
  for (const auto member : kMembers)
    if (to.*member && end.*member && middle.*member)
      *(to.*member) += excess(*(end.*member), *(middle.*member));
}

/// An embedding or a head stays whole at its end; the layers are spread.
Stages keep_extra_work(const Stages& from, std::size_t count) {
  const Stages kinds = make_stage_kinds(from);
  Stages layers = from;
  for (StageEntry& stage : layers) stage.backward = full_backward(stage);
  add_excess(layers.front(), kinds[0], kinds[1], -1);
  add_excess(layers.back(), kinds[2], kinds[1], -1);
  Stages to = spread_evenly(layers, count);
  add_excess(to.front(), kinds[0], kinds[1], 1);
  add_excess(to.back(), kinds[2], kinds[1], 1);
  return to;
}

/// Whether two stages have the same work.
bool is_alike(const StageEntry& stage, const StageEntry& other) {
  const auto same = [&](const auto member) { return stage.*member == other.*member; };
  const auto same_update = [&](const auto member) {
    return stage.update.*member == other.update.*member;
  };
  const auto activations_of = [](const StageEntry& entry) {
    return entry.activation_bytes ? std::optional(entry.activation_bytes->forward) : std::nullopt;
  };
  return stage.forward == other.forward && full_backward(stage) == full_backward(other) &&
         std::all_of(kMembers.begin(), kMembers.end(), same) &&
         std::all_of(kUpdates.begin(), kUpdates.end(), same_update) &&
         activations_of(stage) == activations_of(other);
}

/// Whether stages lie between the ends, and the schedule has two of them.
bool has_restaged_ends(const CostTable& table, const Schedule& schedule, std::int32_t shards) {
  return static_cast<std::int32_t>(table.stages.size()) - shards > 2 &&
         schedule.stages_per_pipeline() - shards > 1 && is_restaged(table, schedule, shards);
}

Stages restage(const Stages& from, std::size_t count, Ends ends) {
  switch (ends) {
    case Ends::kMoreLayers: return spread_evenly(from, count);
    case Ends::kHeavierLayers: return scale_ends(from, count);
    case Ends::kExtraWork: return keep_extra_work(from, count);
  }
  return {};
}

}  // namespace

bool is_restaged(const CostTable& table, const Schedule& schedule, std::int32_t shards) {
  const auto given = static_cast<std::int32_t>(table.stages.size());
  if (table.same_stages || schedule.side_stages != shards) return false;
  const bool can_be_cut = shards > 0 ? !has_lists(table) && table.parts.stages.empty()
                                     : table.divisible && schedule.graph.is_chain();
  return can_be_cut && given > shards && given != schedule.stages_per_pipeline();
}

bool restages_ends(const CostTable& table, const Schedule& schedule, std::int32_t shards) {
  if (!has_restaged_ends(table, schedule, shards)) return false;
  const auto differ = [&](const Stages& stages) {
    const Stages kinds = make_stage_kinds({stages.begin(), stages.end() - shards});
    return !is_alike(kinds[0], kinds[1]) || !is_alike(kinds[2], kinds[1]);
  };
  return differ(table.stages) || std::any_of(table.replicas.begin(), table.replicas.end(), differ);
}

CostTable restage(const CostTable& table, const Schedule& schedule, std::int32_t shards) {
  if (!is_restaged(table, schedule, shards)) return table;
  const auto count = static_cast<std::size_t>(schedule.stages_per_pipeline() - shards);
  const Ends ends = has_restaged_ends(table, schedule, shards) ? table.ends : Ends::kMoreLayers;
  const auto restaged = [&](const Stages& stages) {
    const auto first_shard = stages.end() - shards;
    Stages to = restage({stages.begin(), first_shard}, count, ends);
    to.insert(to.end(), first_shard, stages.end());
    return to;
  };
  CostTable fitted = table;
  fitted.stages = restaged(table.stages);
  for (Stages& stages : fitted.replicas) stages = restaged(stages);
  return fitted;
}

}  // namespace bubblescope::inline sim
