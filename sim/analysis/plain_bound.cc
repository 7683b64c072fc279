// Follows one micro-batch through the stages.
#include "sim/analysis/plain_bound.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/analysis/rank_bound.h"
#include "sim/ir/needs.h"

namespace bubblescope::inline sim {

namespace {

/// The longest chains of one micro-batch through an op: before it, and from its start.
struct OpChains {
  Nanos duration = 0;
  Nanos head = 0;
  Nanos tail = 0;

  Nanos end() const { return head + duration; }
};

struct StageChains {
  OpChains forward;
  OpChains backward;
  OpChains weight_grad;  ///< takes no time where backwards are full
};

class PlainChains {
 public:
  PlainChains(const Schedule& schedule, const CostModel& costs, OpKind backward)
      : schedule_(schedule), message_(costs.message), stages_(costs.stages.size()) {
    const bool is_split = backward == OpKind::kInputGrad;
    for (std::size_t at = 0; at < stages_.size(); ++at) {
      const StageCost& cost = costs.stages[at];
      stages_[at].forward.duration = cost.forward;
      stages_[at].backward.duration = is_split ? cost.input_grad : cost.backward;
      stages_[at].weight_grad.duration = is_split ? cost.weight_grad : 0;
    }
    find_heads();
    find_tails();
  }

  Nanos bound() const {
    const Nanos microbatches = schedule_.shape.microbatches / schedule_.pipelines;
    std::vector<std::vector<OpClass>> of_rank(static_cast<std::size_t>(schedule_.shape.ranks));
    Nanos bound = 0;
    for (std::size_t at = 0; at < stages_.size(); ++at) {
      const auto rank = static_cast<std::size_t>(schedule_.rank_of_stage[at]);
      for (const OpChains* ops :
           {&stages_[at].forward, &stages_[at].backward, &stages_[at].weight_grad}) {
        bound = std::max(bound, ops->head + ops->tail);
        if (ops->duration == 0) continue;
        of_rank[rank].push_back(
            {ops->head, ops->tail - ops->duration, ops->duration * microbatches});
      }
    }
    for (std::vector<OpClass>& classes : of_rank)
      bound = std::max(bound, bound_of_rank(std::move(classes), 0));
    return bound;
  }

 private:
  StageChains& at(std::int32_t stage) { return stages_[static_cast<std::size_t>(stage)]; }

  Nanos travel(std::int32_t from, std::int32_t to) const {
    return schedule_.rank_of_stage[static_cast<std::size_t>(from)] ==
                   schedule_.rank_of_stage[static_cast<std::size_t>(to)]
               ? 0
               : message_;
  }

  /// Activations go to later stages, and gradients to earlier ones.
  void find_heads() {
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage)
      for_each_input(schedule_, stage, [&](std::int32_t input) {
        at(stage).forward.head = at(input).forward.end() + travel(input, stage);
      });
    for (std::int32_t stage = schedule_.stages(); stage-- > 0;) {
      StageChains& own = at(stage);
      own.backward.head = own.forward.end();
      for_each_reader(schedule_, stage, [&](std::int32_t reader) {
        own.backward.head =
            std::max(own.backward.head, at(reader).backward.end() + travel(reader, stage));
      });
      own.weight_grad.head = own.backward.end();
    }
  }

  void find_tails() {
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) {
      StageChains& own = at(stage);
      own.weight_grad.tail = own.weight_grad.duration;
      Nanos after = own.weight_grad.tail;
      for_each_input(schedule_, stage, [&](std::int32_t input) {
        after = std::max(after, travel(stage, input) + at(input).backward.tail);
      });
      own.backward.tail = own.backward.duration + after;
    }
    for (std::int32_t stage = schedule_.stages(); stage-- > 0;) {
      StageChains& own = at(stage);
      Nanos after = own.backward.tail;
      for_each_reader(schedule_, stage, [&](std::int32_t reader) {
        after = std::max(after, travel(stage, reader) + at(reader).forward.tail);
      });
      own.forward.tail = own.forward.duration + after;
    }
  }

  const Schedule& schedule_;
  Nanos message_;
  std::vector<StageChains> stages_;
};

}  // namespace

Nanos bound_plain_step(const Schedule& schedule, const CostModel& costs, OpKind backward) {
  return PlainChains(schedule, costs, backward).bound();
}

}  // namespace bubblescope::inline sim
