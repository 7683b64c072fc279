// Keeps the ready units in the order in which the rank prefers them.
#include "exec/runtime/ready_queue.h"

#include <algorithm>
#include <utility>

namespace bubblescope::exec {

ReadyQueue::ReadyQueue(std::vector<ReadyUnit> units, const std::vector<std::int64_t>& priority,
                       Followers followers)
    : units_(std::move(units)),
      followers_(std::move(followers)),
      untouched_(bound_of(units_)),
      none_(units_, priority),
      arrived_(none_),
      awaited_(none_),
      memory_(untouched_) {
  rewind();
}

void ReadyQueue::rewind() {
  states_.clear();
  for (const ReadyUnit& unit : units_) states_.push_back({unit.first == unit.last ? 1 : 2});
  for (const std::vector<std::uint32_t>& waiting : followers_)
    for (const std::uint32_t place : waiting) ++states_[place].missing_own;
  arrived_ = awaited_ = none_;
  coming_.clear();
  first_left_ = 0;
  memory_ = untouched_;
  for (std::size_t place = 0; place < followers_.size(); ++place) add_choice(place);
}

bool ReadyQueue::may_run(std::size_t place) const {
  return units_[place].keeps_place ? place == first_left_ : memory_.allows(place);
}

/// Adds the unit to the choices that it belongs to. One that keeps its place is none before that.
void ReadyQueue::add_choice(std::size_t place) {
  if (units_[place].keeps_place && place != first_left_) return;
  const State& state = states_[place];
  if (state.has_arrived)
    arrived_.add(static_cast<std::uint32_t>(place));
  else if (!followers_.empty() && state.missing_ops > 0 && state.missing_own == 0)
    awaited_.add(static_cast<std::uint32_t>(place));
}

void ReadyQueue::add_ready_op(std::size_t place, Nanos time) {
  State& state = states_[place];
  state.ready = std::max(state.ready, time);
  if (--state.missing_ops > 0) return;
  const auto number = static_cast<std::uint32_t>(place);
  coming_.emplace(state.ready, none_.preference_of(number));
  awaited_.remove(number);
}

std::optional<ReadyQueue::Choice> ReadyQueue::find(Nanos free) {
  while (!coming_.empty() && coming_.begin()->first <= free) {
    const std::uint32_t place = none_.place_of(coming_.begin()->second);
    coming_.erase(coming_.begin());
    states_[place].has_arrived = true;
    add_choice(place);
  }
  if (const std::optional<std::uint32_t> best = arrived_.find(memory_)) return Choice{*best, free};
  for (const auto& [time, preference] : coming_)
    if (const std::uint32_t place = none_.place_of(preference); may_run(place))
      return Choice{place, time};
  return std::nullopt;
}

bool ReadyQueue::prefers_another(std::size_t place) const {
  const std::optional<std::uint32_t> other = awaited_.find(memory_);
  return other &&
         none_.preference_of(*other) < none_.preference_of(static_cast<std::uint32_t>(place));
}

ReadyUnit ReadyQueue::take(std::size_t place) {
  const auto number = static_cast<std::uint32_t>(place);
  memory_.take(place);
  states_[place].is_taken = true;
  arrived_.remove(number);
  coming_.erase({states_[place].ready, none_.preference_of(number)});
  while (first_left_ < units_.size() && states_[first_left_].is_taken) ++first_left_;
  if (first_left_ < units_.size()) add_choice(first_left_);
  if (!followers_.empty())
    for (const std::uint32_t waiting : followers_[place])
      if (--states_[waiting].missing_own == 0) add_choice(waiting);
  return units_[place];
}

}  // namespace bubblescope::exec
