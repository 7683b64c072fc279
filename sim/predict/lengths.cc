// Computes the model once for every length and combines the results.
#include "sim/predict/lengths.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/model/message_costs.h"

namespace bubblescope::inline sim {

namespace {

/// The costs for each micro-batch's length. Refers to the map's entries.
using ByMicrobatch = std::vector<const Models*>;

Models find_costs_of(ModelOnDevices on, std::int64_t length, const Schedule& schedule,
                     const MemoryModel& memory) {
  on.parallel.sequence = length;
  on.sequence_lengths.clear();
  return find_model_costs(std::move(on), schedule, memory);
}

CostTensor<StageCost> combine_ops(const ByMicrobatch& models, const Schedule& schedule) {
  const std::int32_t slices = schedule.shape.slices;
  CostTensor<StageCost> ops(slices);
  std::vector<StageCost> of_stage;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    of_stage.clear();
    for (const Models* each : models) {
      const auto first = each->costs.stages.begin() + std::int64_t{stage} * slices;
      of_stage.insert(of_stage.end(), first, first + slices);
    }
    ops.add_stage(of_stage);
  }
  return ops;
}

CostTensor<MessageCost> combine_messages(const ByMicrobatch& models, const Schedule& schedule) {
  const std::int64_t ranks = schedule.shape.ranks;
  return make_message_tensor<MessageCost>(
      schedule, true, [&](MessageCost& cost, const StageMessage& message) {
        const CostModel& costs =
            models[static_cast<std::size_t>(message.producer.microbatch)]->costs;
        const auto pair = static_cast<std::size_t>(message.from * ranks + message.to);
        raise_to(message.forward ? cost.forward : cost.backward, costs.message_between[pair]);
        raise_to(message.forward ? cost.forward_bytes : cost.backward_bytes,
                 costs.byte_time_between[pair]);
      });
}

CostTensor<SliceBytes> combine_bytes(const ByMicrobatch& models, const Schedule& schedule) {
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  CostTensor<SliceBytes> bytes(schedule.shape.slices);
  std::vector<SliceBytes> of_stage;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(schedule.stages()); ++stage) {
    of_stage.clear();
    for (const Models* each : models) {
      const MemoryModel& memory = each->memory;
      const Bytes checkpoint = memory.checkpoint_bytes.empty() ? 0 : memory.checkpoint_bytes[stage];
      of_stage.insert(of_stage.end(), slices, {memory.activation_bytes[stage], checkpoint});
    }
    bytes.add_stage(of_stage);
  }
  return bytes;
}

/// The mean over micro-batches, for what asks for one cost.
void set_means(std::vector<StageCost>& stages, const ByMicrobatch& models) {
  for (const auto member :
       {&StageCost::forward, &StageCost::backward, &StageCost::input_grad, &StageCost::weight_grad,
        &StageCost::recompute, &StageCost::evict, &StageCost::load})
    for (std::size_t at = 0; at < stages.size(); ++at) {
      double sum = 0;
      for (const Models* each : models) sum += static_cast<double>(each->costs.stages[at].*member);
      stages[at].*member = std::llround(sum / static_cast<double>(models.size()));
    }
}

void expect_lengths(const ModelOnDevices& on, const Schedule& schedule) {
  const std::vector<std::int64_t>& lengths = on.sequence_lengths;
  const auto microbatches = static_cast<std::size_t>(schedule.shape.microbatches);
  if (lengths.size() != microbatches)
    throw Error(fmt::format("`lengths` has {}, but {} has {}; give one for each",
                            counted(lengths.size(), "sequence length"), schedule.name,
                            counted(microbatches, "micro-batch")));
  if (on.parts) throw Error("`parts` needs micro-batches of equal length; leave `lengths` out");
  const std::int64_t parts = std::int64_t{on.parallel.context} * on.parallel.tensor;
  for (std::size_t at = 0; at < lengths.size(); ++at)
    if (lengths[at] % parts != 0)
      throw Error(
          fmt::format("`lengths`: the {} of micro-batch {} cannot be divided by `cp` times `tp`, "
                      "{}; pad them to {}",
                      counted(lengths[at], "token"), at, parts, (lengths[at] / parts + 1) * parts));
}

}  // namespace

Models find_length_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory) {
  expect_lengths(on, schedule);
  const std::vector<std::int64_t> lengths = on.sequence_lengths;
  std::map<std::int64_t, Models> of_length;
  ByMicrobatch models;
  for (const std::int64_t length : lengths) {
    const auto [known, is_new] = of_length.try_emplace(length);
    if (is_new) known->second = find_costs_of(on, length, schedule, memory);
    models.push_back(&known->second);
  }
  Models combined = of_length.rbegin()->second;
  combined.placed->on.sequence_lengths = lengths;
  if (of_length.size() == 1) return combined;
  combined.costs.by_microbatch = combine_ops(models, schedule);
  combined.costs.messages = combine_messages(models, schedule);
  combined.memory.by_microbatch = combine_bytes(models, schedule);
  set_means(combined.costs.stages, models);
  return combined;
}

}  // namespace bubblescope::inline sim
