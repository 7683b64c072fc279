// A random walk: any op that is ready may come next.
#include "tests/support/random_schedule.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/post_messages.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {

namespace {

class RandomWalk {
 public:
  RandomWalk(std::uint32_t seed, const RandomTraits& traits) : random_(seed), traits_(traits) {}

  Schedule run() && {
    choose_shape();
    const ValueIndex index(schedule_);
    produced_.assign(index.size(), false);
    std::vector<Op> waiting = all_ops();
    while (!waiting.empty()) place_one(waiting, index);
    if (traits_.messages) schedule_.posted = post_messages(schedule_);
    if (!posts_messages(schedule_)) schedule_.posted.clear();
    if (traits_.idle) sprinkle_idle();
    return std::move(schedule_);
  }

 private:
  /// Uses a remainder because the distributions of std differ between libraries.
  std::int32_t below(std::int32_t limit) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(limit));
  }
  bool chance(std::int32_t percent) { return below(100) < percent; }

  void choose_shape() {
    Shape& shape = schedule_.shape;
    shape.ranks = 1 + below(4);
    const std::int32_t stages_per_rank = 1 + below(2);
    schedule_.pipelines = chance(25) ? 2 : 1;
    shape.microbatches = schedule_.pipelines * (1 + below(3));
    shape.slices = traits_.slices ? 1 + below(3) : 1;
    for (std::int32_t stage = 0; stage < shape.ranks * stages_per_rank; ++stage)
      schedule_.rank_of_stage.push_back(stage % shape.ranks);
    std::shuffle(schedule_.rank_of_stage.begin(), schedule_.rank_of_stage.end(), random_);
    if (schedule_.stages() % schedule_.pipelines != 0) schedule_.pipelines = 1;
    schedule_.order.resize(shape.ranks);
    schedule_.name = "random";
    schedule_.forward_only = chance(10);
    if (traits_.graph) choose_graph();
    shape.chunks = std::max(1, (schedule_.stages_per_pipeline() + shape.ranks - 1) / shape.ranks);
  }

  void choose_graph() {
    schedule_.pipelines = 1;
    StageLists inputs(1);
    for (std::int32_t stage = 1; stage < schedule_.stages(); ++stage) {
      std::set<std::int32_t> read;
      for (std::int32_t count = below(4); count > 0; --count) read.insert(below(stage));
      inputs.emplace_back(read.begin(), read.end());
    }
    schedule_.graph = StageGraph(std::move(inputs));
  }

  std::vector<Op> all_ops() {
    std::vector<Op> ops;
    const bool recompute = traits_.recompute && !schedule_.forward_only;
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage)
      for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch) {
        if (stage / schedule_.stages_per_pipeline() != schedule_.pipeline_of_microbatch(microbatch))
          continue;
        const bool split = chance(50);
        const auto slices = static_cast<std::int16_t>(schedule_.shape.slices);
        for (std::int16_t slice = 0; slice < slices; ++slice) {
          const auto add = [&](OpKind kind) {
            ops.push_back({stage, microbatch, slice, kind, Pairing::kAlone});
          };
          add(OpKind::kForward);
          if (schedule_.forward_only) continue;
          add(split ? OpKind::kInputGrad : OpKind::kBackward);
          if (split) add(OpKind::kWeightGrad);
          if (recompute) add(OpKind::kRecompute);
        }
      }
    std::shuffle(ops.begin(), ops.end(), random_);
    return ops;
  }

  bool is_ready(const Op& op, const ValueIndex& index) const {
    for (const Value& value : collect_needs(schedule_, op))
      if (!produced_[index(value)]) return false;
    if (!traits_.recompute || !gives_input_grad(op.kind)) return true;
    return produced_[index(Value{ValueKind::kRecomputed, op.stage, op.microbatch, op.slice})];
  }

  /// Appends the first ready op of the shuffled list, sometimes with a partner.
  void place_one(std::vector<Op>& waiting, const ValueIndex& index) {
    const auto first = std::find_if(waiting.begin(), waiting.end(),
                                    [&](const Op& op) { return is_ready(op, index); });
    const Op op = *first;
    waiting.erase(first);
    RankOrder& order = schedule_.order[schedule_.rank_of_stage[op.stage]];
    const auto partner = std::find_if(waiting.begin(), waiting.end(), [&](const Op& other) {
      return op.kind == OpKind::kForward && gives_input_grad(other.kind) &&
             schedule_.rank_of_stage[other.stage] == schedule_.rank_of_stage[op.stage] &&
             is_ready(other, index);
    });
    produced_[index(op)] = true;
    if (partner == waiting.end() || chance(50)) return order.push_back(op);
    produced_[index(*partner)] = true;
    order.push_back(op);
    order.back().pairing = Pairing::kFirst;
    order.push_back(*partner);
    order.back().pairing = Pairing::kSecond;
    waiting.erase(partner);
  }

  void sprinkle_idle() {
    bool any = false;
    for (const RankOrder& ops : schedule_.order) {
      RankOrder& cells = schedule_.posted.emplace_back();
      for (const Op& op : ops) {
        if (op.pairing != Pairing::kSecond && chance(30)) {
          cells.push_back({0, 0, 0, OpKind::kIdle});
          any = true;
        }
        cells.push_back(op);
      }
    }
    if (!any) schedule_.posted.clear();
  }

  std::mt19937 random_;
  RandomTraits traits_;
  Schedule schedule_;
  std::vector<bool> produced_;
};

}  // namespace

Schedule random_schedule(std::uint32_t seed, const RandomTraits& traits) {
  return RandomWalk(seed, traits).run();
}

Schedule damage(Schedule schedule, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(first, last)(random);
  };
  for (std::int64_t times = draw(1, 2); times > 0; --times) {
    const auto rank = static_cast<std::size_t>(draw(0, std::ssize(schedule.order) - 1));
    RankOrder& ops = schedule.order[rank];
    if (ops.empty()) continue;
    const auto pick = [&] { return draw(0, std::ssize(ops) - 1); };
    Op& op = ops[static_cast<std::size_t>(pick())];
    switch (draw(0, 6)) {
      case 0: std::swap(op, ops[static_cast<std::size_t>(pick())]); break;
      case 1: op = ops[static_cast<std::size_t>(pick())]; break;
      case 2: ops.erase(ops.begin() + pick()); break;
      case 3: ops.push_back(Op{op}); break;
      case 4: op.kind = static_cast<OpKind>(draw(0, kOpKinds - 1)); break;
      case 5: op.microbatch += static_cast<std::int32_t>(draw(-1, 1)); break;
      default: op.stage += static_cast<std::int32_t>(draw(-1, 1)); break;
    }
  }
  return schedule;
}

}  // namespace bubblescope::tests
