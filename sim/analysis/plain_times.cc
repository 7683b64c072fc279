// Looks up where each stage's times are.
#include "sim/analysis/plain_times.h"

#include "sim/ir/needs.h"

namespace bubblescope::inline sim {

namespace {

/// The time of a message between two ranks.
Nanos travel(const CostModel& costs, const Schedule& schedule, std::int32_t from, std::int32_t to) {
  if (from == to) return 0;
  if (costs.message_between.empty()) return costs.message;
  return costs
      .message_between[static_cast<std::size_t>(std::int64_t{from} * schedule.shape.ranks + to)];
}

/// The messages of a stage where costs give them by links.
MessageCost find_messages(const CostModel& costs, const Schedule& schedule, std::int32_t stage) {
  const auto travel_to = [&](std::int32_t other) {
    return travel(costs, schedule, schedule.rank_of_stage[static_cast<std::size_t>(stage)],
                  schedule.rank_of_stage[static_cast<std::size_t>(other)]);
  };
  MessageCost cost;
  for_each_reader(schedule, stage, [&](std::int32_t reader) { cost.forward = travel_to(reader); });
  for_each_input(schedule, stage, [&](std::int32_t input) { cost.backward = travel_to(input); });
  return cost;
}

}  // namespace

template <class Value>
PlainTimes::Row<Value> PlainTimes::row_of(const CostTensor<Value>& tensor, std::int32_t stage) {
  const auto values = tensor.of_stage(stage);
  return {values.data(), values.size() > 1 ? std::size_t{1} : 0};
}

PlainTimes::PlainTimes(const Schedule& schedule, const CostModel& costs) {
  const std::int32_t stages = schedule.stages();
  if (costs.messages.empty())
    for (std::int32_t stage = 0; stage < stages; ++stage)
      same_messages_.push_back(find_messages(costs, schedule, stage));
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    ops_.push_back(costs.by_microbatch.empty() ? Row<StageCost>{&costs.stages[at]}
                                               : row_of(costs.by_microbatch, stage));
    messages_.push_back(costs.messages.empty() ? Row<MessageCost>{&same_messages_[at]}
                                               : row_of(costs.messages, stage));
  }
}

bool covers_plain_step(const CostModel& costs, const Schedule& schedule) {
  const auto ranks = static_cast<std::size_t>(schedule.shape.ranks);
  const bool has_links =
      costs.message_between.empty() || costs.message_between.size() == ranks * ranks;
  return costs.slices == 1 && costs.stages.size() == schedule.rank_of_stage.size() && has_links &&
         covers_microbatches(costs.by_microbatch, schedule) &&
         covers_microbatches(costs.messages, schedule) && costs.op_gap == 0 && costs.parts.empty();
}

}  // namespace bubblescope::inline sim
