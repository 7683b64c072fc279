// Gives ops the mean durations of groups.
#include "sim/analysis/equal_work.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "sim/analysis/mean.h"

namespace bubblescope::inline sim {

namespace {

/// Gives every compute op the mean duration of the ops with the same key, over all replicas of the
/// step.
template <class KeyOf>
Counterfactual with_means(KeyOf key_of) {
  return [key_of](std::size_t, const ReplicatedStep& step, std::vector<Durations> durations) {
    std::map<decltype(key_of(std::size_t{}, Op{})), Mean> means;
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        means[key_of(replica, one.op)].add(static_cast<double>(durations[replica][id]));
      });
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        durations[replica][id] = std::llround(means.at(key_of(replica, one.op)).value());
      });
    return durations;
  };
}

}  // namespace

Counterfactual with_equal_stages(const ObservedStep& like) {
  return with_means([like](std::size_t replica, const Op& op) {
    const std::int32_t stage = like.is_on_side_stage(op) ? op.stage : -1;
    return std::tuple(replica, op.kind, op.microbatch, op.slice, stage);
  });
}

Counterfactual with_equal_lengths() {
  return with_means(
      [](std::size_t, const Op& op) { return std::tuple(op.kind, op.stage, op.slice); });
}

std::vector<Durations> with_free_messages(std::size_t, const ReplicatedStep& step,
                                          std::vector<Durations> durations) {
  for (std::size_t replica = 0; replica < step.size(); ++replica)
    for (InstructionId id = 0; id < durations[replica].size(); ++id)
      if (is_message(step[replica].program.instructions[id].op.kind)) durations[replica][id] = 0;
  return durations;
}

}  // namespace bubblescope::inline sim
