// Chooses the forwards to evict and places their copies.
#include "sim/ir/offload.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

/// A forward and the first op that needs its activations, by their positions in the rank's order.
struct StoredForward {
  std::size_t forward = 0;
  std::size_t user = 0;
};

std::vector<StoredForward> collect_waits(const RankOrder& ops) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int16_t>, std::size_t> forward_of;
  std::vector<StoredForward> waits;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const Op& op = ops[at];
    const std::tuple key{op.stage, op.microbatch, op.slice};
    if (op.kind == OpKind::kForward) forward_of[key] = at;
    if (op.kind != OpKind::kRecompute && !gives_input_grad(op.kind)) continue;
    const auto forward = forward_of.find(key);
    if (forward == forward_of.end()) continue;
    waits.push_back({forward->second, op.pairing == Pairing::kSecond ? at - 1 : at});
    // If there is an R, it comes first, and its backward then finds no entry.
    forward_of.erase(forward);
  }
  return waits;
}

/// The longest waits, as many as the plan allows, among those with room between the two copies.
std::vector<StoredForward> choose(std::vector<StoredForward> waits, const OffloadPlan& plan) {
  const auto all = static_cast<std::int64_t>(waits.size());
  const auto wanted = static_cast<std::size_t>((all * plan.share + kWhole / 2) / kWhole);
  const std::size_t min_gap = 2 * static_cast<std::size_t>(plan.ops_per_copy) + 2;
  std::erase_if(waits,
                [&](const StoredForward& wait) { return wait.user - wait.forward < min_gap; });
  std::stable_sort(waits.begin(), waits.end(),
                   [](const StoredForward& left, const StoredForward& right) {
                     return left.user - left.forward > right.user - right.forward;
                   });
  if (waits.size() > wanted) waits.resize(wanted);
  return waits;
}

/// The copies before each position of an order; the last entry is for its end.
struct Copies {
  std::vector<RankOrder> before;

  explicit Copies(std::size_t ops) : before(ops + 1) {}

  void add(std::size_t place, Op op, OpKind kind) {
    op.kind = kind;
    op.pairing = Pairing::kAlone;
    before[place].push_back(op);
  }
};

Copies place_copies(const RankOrder& ops, const OffloadPlan& plan) {
  const auto ops_between = static_cast<std::size_t>(plan.ops_per_copy);
  const auto splits_pair = [&](std::size_t place) {
    return place < ops.size() && ops[place].pairing == Pairing::kSecond;
  };
  std::vector<StoredForward> waits = choose(collect_waits(ops), plan);
  std::sort(waits.begin(), waits.end(), [](const StoredForward& left, const StoredForward& right) {
    return left.forward < right.forward;
  });
  Copies copies(ops.size());
  for (const StoredForward& wait : waits) {
    const std::size_t free = wait.forward + ops_between + 1;
    copies.add(splits_pair(free) ? free + 1 : free, ops[wait.forward], OpKind::kEvict);
  }
  std::sort(waits.begin(), waits.end(), [](const StoredForward& left, const StoredForward& right) {
    return left.user < right.user;
  });
  for (const StoredForward& wait : waits) {
    const std::size_t taken = wait.user - ops_between;
    copies.add(splits_pair(taken) ? taken - 1 : taken, ops[wait.forward], OpKind::kLoad);
  }
  return copies;
}

void expect_free(const Schedule& schedule) {
  if (schedule.forward_only)
    throw Error(Fault::kProblem,
                schedule.name + " runs forward only and saves no activations; leave `offload` out");
  if (!schedule.offload_target_of_rank.empty())
    throw Error(Fault::kProblem, schedule.name + " evicts already; leave `offload` out");
  if (schedule.side_stages > 0)
    throw Error(Fault::kProblem, schedule.name +
                                     " has stages beside the chain, whose activations are needed "
                                     "soon; leave `offload` out");
  if (schedule.fused_forwards > 1)
    throw Error(Fault::kProblem, schedule.name +
                                     " fuses forwards, between which copies cannot be "
                                     "placed; leave `offload` out, or unfuse them");
  if (posts_messages(schedule))
    throw Error(Fault::kProblem, schedule.name +
                                     " posts its messages, between which copies cannot be placed; "
                                     "leave `offload` out, or the messages");
}

}  // namespace

ValidSchedule with_offload(ValidSchedule given, const OffloadPlan& plan) {
  expect_free(given);
  Schedule schedule = std::move(given).take();
  // The idle slots of the grid no longer apply.
  schedule.posted.clear();
  schedule.offload_target_of_rank = host_offload_targets(schedule.shape.ranks);
  for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
    const RankOrder ops = std::exchange(schedule.order[rank], {});
    const bool versions = !schedule.weights.empty();
    const std::vector<WeightUse> uses =
        versions ? std::exchange(schedule.weights[rank], {}) : std::vector<WeightUse>();
    const Copies copies = place_copies(ops, plan);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> version;
    for (std::size_t at = 0; at <= ops.size(); ++at) {
      for (const Op& copy : copies.before[at]) {
        schedule.order[rank].push_back(copy);
        if (versions)
          schedule.weights[rank].push_back({version[{copy.stage, copy.microbatch}], {}});
      }
      if (at == ops.size()) break;
      schedule.order[rank].push_back(ops[at]);
      if (!versions) continue;
      schedule.weights[rank].push_back(uses[at]);
      if (ops[at].kind == OpKind::kForward)
        version[{ops[at].stage, ops[at].microbatch}] = uses[at].read;
    }
  }
  return require_valid(std::move(schedule));
}

}  // namespace bubblescope::inline sim
