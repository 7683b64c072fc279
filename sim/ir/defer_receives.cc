// Walks down every rank's list once and defers its receives.
#include "sim/ir/defer_receives.h"

#include <cstdint>
#include <string>
#include <utility>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

class Deferral {
 public:
  explicit Deferral(const Schedule& schedule)
      : schedule_(schedule),
        index_(schedule),
        held_(index_.size(), false),
        held_from_(schedule.shape.ranks) {}

  RankOrder run(std::int32_t rank, const RankOrder& posted) {
    deferred_.clear();
    deferred_.reserve(posted.size());
    for (std::size_t at = 0; at < posted.size(); ++at) {
      const Op& op = posted[at];
      if (is_recv(op.kind)) {
        hold(op);
        continue;
      }
      if (is_send(op.kind) && rank < peer_of(op)) release_from(peer_of(op));
      if (is_compute(op.kind) && op.pairing != Pairing::kSecond) release_for(op);
      if (op.pairing == Pairing::kFirst) release_for(posted[at + 1]);
      deferred_.push_back(op);
    }
    expect_none_held(rank);
    return std::move(deferred_);
  }

 private:
  Value value_of(const Op& message) const {
    const std::optional<Value> value = find_carried_value(schedule_, message);
    if (!value)
      throw Error(Fault::kProblem,
                  to_string(message) + " has no adjacent stage or no such micro-batch; remove it");
    return *value;
  }

  std::int32_t peer_of(const Op& message) const {
    const Value value = value_of(message);
    const std::int32_t other_end =
        is_recv(message.kind) ? value.stage : *receiving_stage(schedule_, value);
    return schedule_.rank_of(other_end, value.microbatch);
  }

  void hold(const Op& receive) {
    held_[index_(value_of(receive))] = true;
    held_from_[peer_of(receive)].push_back(receive);
  }

  void release(const Op& receive) {
    const std::size_t value = index_(value_of(receive));
    if (!held_[value]) return;
    held_[value] = false;
    deferred_.push_back(receive);
  }

  void release_from(std::int32_t peer) {
    for (const Op& receive : held_from_[peer]) release(receive);
    held_from_[peer].clear();
  }

  void release_for(const Op& op) {
    for (const Value& value : collect_needs(schedule_, op)) {
      if (value.stage != op.stage) release(make_receive(schedule_, value, op.stage));
    }
  }

  void expect_none_held(std::int32_t rank) {
    for (std::vector<Op>& receives : held_from_) {
      for (const Op& receive : receives)
        if (held_[index_(value_of(receive))])
          throw Error(Fault::kProblem, to_string(receive) + " of rank " + std::to_string(rank) +
                                           " is after every op that needs it; move it up");
      receives.clear();
    }
  }

  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<bool> held_;                  ///< by the value that the receive carries
  std::vector<std::vector<Op>> held_from_;  ///< [rank], in posted order; may contain released ones
  RankOrder deferred_;
};

}  // namespace

std::vector<RankOrder> defer_receives(const ValidSchedule& schedule,
                                      const std::vector<RankOrder>& posted) {
  Deferral deferral(schedule);
  std::vector<RankOrder> deferred;
  for (std::int32_t rank = 0; rank < schedule->shape.ranks; ++rank)
    deferred.push_back(deferral.run(rank, posted[rank]));
  return deferred;
}

}  // namespace bubblescope::inline sim
