// Keeps the ready units in the order in which the rank prefers them.
#include "exec/runtime/ready_queue.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bubblescope::exec {

ReadyQueue::ReadyQueue(std::vector<ReadyUnit> units, const std::vector<std::int64_t>& priority)
    : units_(std::move(units)),
      preferred_(units_.size()),
      preference_(units_.size()),
      untouched_(bound_of(units_)),
      memory_(untouched_) {
  std::iota(preferred_.begin(), preferred_.end(), std::size_t{0});
  std::stable_sort(preferred_.begin(), preferred_.end(), [&](std::size_t left, std::size_t right) {
    return priority[units_[left].first] < priority[units_[right].first];
  });
  for (std::size_t at = 0; at < preferred_.size(); ++at) preference_[preferred_[at]] = at;
  rewind();
}

void ReadyQueue::rewind() {
  states_.clear();
  for (const ReadyUnit& unit : units_) states_.push_back({unit.first == unit.last ? 1 : 2});
  ready_.clear();
  first_waiting_ = first_left_ = 0;
  memory_ = untouched_;
}

void ReadyQueue::add_ready_op(std::size_t place, Nanos time) {
  State& state = states_[place];
  state.ready = std::max(state.ready, time);
  if (--state.missing_ops > 0) return;
  ready_.insert(preference_[place]);
  while (first_waiting_ < preferred_.size() && states_[preferred_[first_waiting_]].missing_ops == 0)
    ++first_waiting_;
}

bool ReadyQueue::may_run(std::size_t place) const {
  return units_[place].keeps_place ? place == first_left_ : memory_.allows(place);
}

std::optional<ReadyQueue::Choice> ReadyQueue::find(Nanos free) const {
  std::optional<Choice> best;
  for (const std::size_t index : ready_) {
    const std::size_t place = preferred_[index];
    const Nanos time = std::max(free, states_[place].ready);
    if ((best && time >= best->time) || !may_run(place)) continue;
    best = Choice{place, time};
    if (time == free) break;
  }
  return best;
}

bool ReadyQueue::prefers_another(std::size_t place,
                                 const std::function<bool(const ReadyUnit& unit)>& may_come) const {
  for (std::size_t index = first_waiting_; index < preference_[place]; ++index) {
    const std::size_t other = preferred_[index];
    if (states_[other].missing_ops > 0 && may_run(other) && may_come(units_[other])) return true;
  }
  return false;
}

ReadyUnit ReadyQueue::take(std::size_t place) {
  memory_.take(place);
  states_[place].is_taken = true;
  while (first_left_ < units_.size() && states_[first_left_].is_taken) ++first_left_;
  ready_.erase(preference_[place]);
  return units_[place];
}

}  // namespace bubblescope::exec
