// Looks through the Config for what no published run had.
#include "sim/predict/departures.h"

#include <algorithm>
#include <functional>
#include <variant>

#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"

namespace bubblescope::inline sim {

namespace {

/// Whether the step ends in another way than it usually does in training.
bool ends_differently(const Schedule& schedule, const Config& config) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr) return false;
  const UpdateOptions usual = choose_model_update(schedule);
  const UpdateOptions chosen = choose_model_update(schedule, model->end);
  const bool reduces = chosen.reduction != GradReduction::kNone;
  return chosen.optimizer != usual.optimizer ||
         reduces != (usual.reduction != GradReduction::kNone);
}

/// Whether the schedule's own ops move the shards of weights that several ranks share.
bool orders_collectives(const Schedule& schedule, const ModelCosts* model) {
  if (model == nullptr || !posts_collectives(schedule)) return false;
  const Parallelism& parallel = model->on.parallel;
  return parallel.copies() > 1;
}

bool has_several_lengths(const ModelCosts* model) {
  if (model == nullptr) return false;
  const auto& lengths = model->on.sequence_lengths;
  return std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) != lengths.end();
}

}  // namespace

bool interleaves_pairs(const Schedule& schedule, const Config& config) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  return model != nullptr && model->on.parts && model->on.parts->pair_order &&
         config.lower.overlap != Overlap::kSerial && has_pairs(schedule);
}

std::vector<std::string> find_departures(const Schedule& schedule, const Config& config) {
  struct Departure {
    const char* what;
    bool is_given;
  };
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  const Departure all[] = {
      {"micro-batches of several lengths", has_several_lengths(model)},
      {"an injected fault", !config.injections.empty()},
      {"a slow rank", !config.slow_ranks.empty()},
      {"micro-batches that arrive during the step", !config.arrivals.empty()},
      {"another end of the step than training has", ends_differently(schedule, config)},
      {"a schedule without flushes", !schedule.weights.empty()},
      {"collectives in the order of its ops", orders_collectives(schedule, model)},
      {"a split output layer", schedule.side_stages > 0},
      {"overlapped pairs whose parts interleave", interleaves_pairs(schedule, config)},
      {"offloaded activations", config.moves.offload && has_kind(schedule, OpKind::kEvict)},
      {"ranks that wait for their sends", config.lower.waits_for_messages()},
  };
  std::vector<std::string> found;
  for (const Departure& departure : all)
    if (departure.is_given) found.emplace_back(departure.what);
  return found;
}

}  // namespace bubblescope::inline sim
