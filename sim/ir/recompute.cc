// Inserts R's into the orders.
#include "sim/ir/recompute.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

std::vector<Recompute> spread_over_stages(const Schedule& schedule,
                                          const std::vector<Recompute>& given) {
  const auto stages = static_cast<std::size_t>(schedule.stages());
  const auto of_pipeline = static_cast<std::size_t>(schedule.stages_per_pipeline());
  if (given.size() != 1 && given.size() != of_pipeline && given.size() != stages)
    throw Error("`recompute` has " + counted(given.size(), "entry") + ", but " + schedule.name +
                " has " + counted(of_pipeline, "stage") +
                "; give one entry for all, or one per stage");
  std::vector<Recompute> spread(stages);
  for (std::size_t stage = 0; stage < stages; ++stage)
    spread[stage] = schedule.is_side_stage(static_cast<std::int32_t>(stage))
                        ? Recompute::kNone
                        : given[stage % given.size()];
  return spread;
}

void expect_backwards_alone(const Schedule& schedule) {
  if (schedule.forward_only)
    throw Error(schedule.name +
                " runs forward only and saves no activations; leave `recompute` out");
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute)
        throw Error(schedule.name + " recomputes already (" + to_string(op) +
                    "); leave `recompute` out");
}

/// The R that must precede this op, if its stage recomputes.
std::optional<Op> recompute_before(const Schedule& schedule, const Op& op) {
  if (!gives_input_grad(op.kind) || schedule.recompute(op.stage) == Recompute::kNone) return {};
  return Op{op.stage, op.microbatch, op.slice, OpKind::kRecompute};
}

/// A list with its R's, and the origin of each entry in the old list: an R has that of its
/// backward.
struct Inserted {
  RankOrder ops;
  std::vector<std::size_t> origin;
};

Inserted insert_recomputation(const Schedule& schedule, const RankOrder& list) {
  Inserted inserted;
  inserted.ops.reserve(list.size() + list.size() / 2);
  for (std::size_t at = 0; at < list.size(); ++at) {
    const bool pair = list[at].pairing == Pairing::kFirst && at + 1 < list.size();
    const std::size_t backward = pair ? at + 1 : at;
    if (list[at].pairing != Pairing::kSecond)
      if (const auto recomputation = recompute_before(schedule, list[backward])) {
        inserted.ops.push_back(*recomputation);
        inserted.origin.push_back(backward);
      }
    inserted.ops.push_back(list[at]);
    inserted.origin.push_back(at);
  }
  return inserted;
}

}  // namespace

std::optional<Recompute> find_recompute(std::string_view word) {
  for (const Recompute known : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
    if (word == name(known)) return known;
  return std::nullopt;
}

ValidSchedule with_recompute(ValidSchedule given, const std::vector<Recompute>& of_stage) {
  std::vector<Recompute> policies = spread_over_stages(given, of_stage);
  if (std::all_of(policies.begin(), policies.end(),
                  [](Recompute policy) { return policy == Recompute::kNone; }))
    return given;
  expect_backwards_alone(given);
  Schedule schedule = std::move(given).take();
  schedule.recompute_of_stage = std::move(policies);
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
    Inserted inserted = insert_recomputation(schedule, schedule.order[rank]);
    schedule.order[rank] = std::move(inserted.ops);
    if (schedule.weights.empty()) continue;
    std::vector<WeightUse> uses;
    for (std::size_t at = 0; at < inserted.origin.size(); ++at) {
      uses.push_back(schedule.weights[rank][inserted.origin[at]]);
      if (schedule.order[rank][at].kind == OpKind::kRecompute) uses.back().written.reset();
    }
    schedule.weights[rank] = std::move(uses);
  }
  for (RankOrder& list : schedule.posted) list = insert_recomputation(schedule, list).ops;
  return require_valid(std::move(schedule));
}

bool recomputes(const Schedule& schedule, std::int32_t stage) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [&](const RankOrder& order) {
    return std::any_of(order.begin(), order.end(), [&](const Op& op) {
      return op.stage == stage && op.kind == OpKind::kRecompute;
    });
  });
}

}  // namespace bubblescope::inline sim
