// Runs one dataflow Program and one set of posted lists in every mode.
#include "sim/ir/check_messages.h"

#include <utility>
#include <variant>

#include "sim/ir/posted_run.h"

namespace bubblescope::inline sim {

namespace {

/// A schedule whose compute ops do not deadlock, with its posted lists.
struct Posted {
  Program dataflow;
  std::vector<PostedSteps> steps;
};

std::variant<Posted, Deadlock> post(const ValidSchedule& schedule, LowerOptions options) {
  options.mode = P2pMode::kDataflow;
  auto lowered = lower(schedule, options);
  if (auto* const deadlock = std::get_if<Deadlock>(&lowered)) return std::move(*deadlock);
  Posted posted{std::get<Program>(std::move(lowered)), {}};
  posted.steps =
      find_steps(schedule, posted.dataflow, make_posted_lists(schedule, options.posting));
  return posted;
}

bool deadlocks(const Posted& posted, P2pMode mode, std::int32_t slots = 0) {
  const LowerOptions options{.mode = mode, .eager_slots = slots};
  return find_message_deadlock(posted.dataflow, posted.steps, options).has_value();
}

std::optional<std::int32_t> slots_needed(const Posted& posted) {
  if (!deadlocks(posted, P2pMode::kRendezvous)) return 0;
  if (deadlocks(posted, P2pMode::kFifo)) return std::nullopt;
  const auto are_too_few = [&](std::int32_t slots) {
    return deadlocks(posted, P2pMode::kEager, slots);
  };
  // More slots never block more: a larger number only moves the awaited receive further to the
  // front.
  std::int32_t too_few = 0;
  std::int32_t enough = 1;
  while (are_too_few(enough)) too_few = std::exchange(enough, 2 * enough);
  while (enough - too_few > 1) {
    const std::int32_t middle = too_few + (enough - too_few) / 2;
    (are_too_few(middle) ? too_few : enough) = middle;
  }
  return enough;
}

/// If the ops themselves deadlock, they do so in every mode.
std::vector<ModeVerdict> check_all_modes(const std::variant<Posted, Deadlock>& posted,
                                         LowerOptions options) {
  std::vector<ModeVerdict> verdicts;
  for (const Named<P2pMode>& mode : kP2pModes) {
    options.mode = mode.choice;
    if (const auto* sound = std::get_if<Posted>(&posted))
      verdicts.push_back(
          {mode.choice, find_message_deadlock(sound->dataflow, sound->steps, options)});
    else
      verdicts.push_back({mode.choice, std::get<Deadlock>(posted)});
  }
  return verdicts;
}

}  // namespace

std::optional<std::int32_t> eager_slots_needed(const ValidSchedule& schedule,
                                               const LowerOptions& options) {
  const auto posted = post(schedule, options);
  if (const auto* sound = std::get_if<Posted>(&posted)) return slots_needed(*sound);
  return std::nullopt;
}

std::vector<ModeVerdict> check_modes(const ValidSchedule& schedule, const LowerOptions& options) {
  return check_all_modes(post(schedule, options), options);
}

MessageVerdict check_messages(const ValidSchedule& schedule, const LowerOptions& options) {
  const auto posted = post(schedule, options);
  MessageVerdict verdict{check_all_modes(posted, options), std::nullopt};
  if (const auto* sound = std::get_if<Posted>(&posted)) verdict.eager_slots = slots_needed(*sound);
  return verdict;
}

}  // namespace bubblescope::inline sim
