// Chooses the forwards to evict and places their copies.
#include "sim/ir/offload.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
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

std::vector<StoredForward> in_order_of_forwards(std::vector<StoredForward> waits) {
  std::sort(waits.begin(), waits.end(), [](const StoredForward& left, const StoredForward& right) {
    return left.forward < right.forward;
  });
  return waits;
}

std::size_t length_of(const StoredForward& wait) { return wait.user - wait.forward; }

/// The ops before which a forward's memory is free, and before which it is taken again.
struct Away {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Chooses forwards to evict on one rank.
class Evictions {
 public:
  Evictions(const std::vector<StoredForward>& waits, std::size_t ops, const OffloadPlan& plan)
      : ops_per_copy_(static_cast<std::size_t>(plan.ops_per_copy)),
        wanted_(static_cast<std::size_t>((std::ssize(waits) * plan.share + kWhole / 2) / kWhole)),
        held_(ops + 1, 0),
        candidates_(waits) {
    for (const StoredForward& wait : waits)
      for (std::size_t at = wait.forward; at <= wait.user; ++at) ++held_[at];
    std::erase_if(candidates_, [this](const StoredForward& wait) {
      return length_of(wait) < 2 * ops_per_copy_ + 2;
    });
  }

  /// Chooses forwards that lower the peak as long as there are enough of them, then those that wait
  /// longest.
  std::vector<StoredForward> choose() && {
    while (const auto lower = find_lower_peak()) take(*lower);
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const StoredForward& left, const StoredForward& right) {
                       return length_of(left) > length_of(right);
                     });
    for (const StoredForward& wait : candidates_)
      if (chosen_.size() < wanted_) chosen_.push_back(wait);
    return std::move(chosen_);
  }

 private:
  Away away(const StoredForward& wait) const {
    return {wait.forward + ops_per_copy_ + 1, wait.user - ops_per_copy_};
  }

  /// Finds the fewest candidates such that at least one of them is away at every op of the peak: at
  /// the first op that none covers, it takes the one that stays away longest. nullopt if there are
  /// not enough.
  std::optional<std::vector<std::size_t>> find_lower_peak() const {
    const std::int64_t peak = *std::max_element(held_.begin(), held_.end());
    std::vector<std::size_t> cover;
    std::optional<std::size_t> longest;  ///< of the candidates that are away by now
    std::size_t next = 0;                ///< candidates are in the order of their forwards
    std::size_t covered = 0;
    for (std::size_t at = 0; at < held_.size(); ++at) {
      for (; next < candidates_.size() && away(candidates_[next]).begin <= at; ++next)
        if (!longest || candidates_[next].user > candidates_[*longest].user) longest = next;
      if (held_[at] < peak || at < covered) continue;
      if (!longest || away(candidates_[*longest]).end <= at) return {};
      if (chosen_.size() + cover.size() == wanted_) return {};
      cover.push_back(*longest);
      covered = away(candidates_[*longest]).end;
    }
    return peak == 0 ? std::nullopt : std::optional(cover);
  }

  void take(const std::vector<std::size_t>& cover) {
    for (const std::size_t at : cover) {
      const StoredForward& wait = candidates_[at];
      for (std::size_t op = away(wait).begin; op < away(wait).end; ++op) --held_[op];
      chosen_.push_back(wait);
    }
    std::vector<StoredForward> left;
    auto taken = cover.begin();
    for (std::size_t at = 0; at < candidates_.size(); ++at)
      if (taken != cover.end() && *taken == at)
        ++taken;
      else
        left.push_back(candidates_[at]);
    candidates_ = std::move(left);
  }

  std::size_t ops_per_copy_;
  std::size_t wanted_;
  std::vector<std::int64_t> held_;         ///< forwards in memory at each op
  std::vector<StoredForward> candidates_;  ///< with room between the two copies; not chosen yet
  std::vector<StoredForward> chosen_ = {};
};

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
  std::vector<StoredForward> waits =
      Evictions(in_order_of_forwards(collect_waits(ops)), ops.size(), plan).choose();
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

/// Throws Error for schedules that take no offload in any shape.
void expect_free(const Schedule& schedule) {
  if (schedule.forward_only)
    throw Error(schedule.name + " runs forward only and saves no activations; leave `offload` out");
  if (!schedule.offload_target_of_rank.empty())
    throw Error(schedule.name + " evicts already; leave `offload` out");
  if (schedule.side_stages > 0)
    throw Error(schedule.name +
                " has stages beside the chain, whose activations are needed soon; leave `offload` "
                "out");
  if (schedule.fused_forwards > 1)
    throw Error(schedule.name +
                " fuses forwards, between which copies cannot be placed; leave `offload` out, or "
                "unfuse them");
  if (posts_messages(schedule))
    throw Error(schedule.name +
                " posts its messages, between which copies cannot be placed; leave `offload` out, "
                "or the messages");
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

bool lowers_peak(const Schedule& schedule) {
  std::int64_t without_copies = 0;
  std::int64_t with_copies = 0;
  for (const RankOrder& ops : schedule.order) {
    std::int64_t forwards = 0;
    std::int64_t away = 0;
    for (const Op& op : ops) {
      forwards += op.kind == OpKind::kForward ? 1 : 0;
      away += op.kind == OpKind::kEvict ? 1 : op.kind == OpKind::kLoad ? -1 : 0;
      without_copies = std::max(without_copies, forwards);
      with_copies = std::max(with_copies, forwards - away);
      forwards -= makes_weight_grad(op.kind) ? 1 : 0;
    }
  }
  return with_copies < without_copies;
}

}  // namespace bubblescope::inline sim
