// Runs one dataflow Program and one set of posted lists in every mode.
#include "sim/ir/check_messages.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "sim/ir/posted_run.h"
#include "sim/ir/swapped_messages.h"

namespace bubblescope::inline sim {

namespace {

/// A schedule whose compute ops do not deadlock, with its posted lists.
struct Posted {
  Program dataflow;
  std::vector<PostedSteps> steps;
  Problems swapped;
  /// Whether post_messages() made the lists: it appends a message to both ends at once when its
  /// producer is placed, so a run in the order in which it appends waits for nothing in any mode,
  /// unless copies or collectives wait for what it appends later.
  bool is_in_step = false;

  std::optional<Deadlock> find_deadlock(P2pMode mode, std::int32_t slots = 0) const {
    return find_message_deadlock(dataflow, steps, {.mode = mode, .eager_slots = slots});
  }
};

bool has_ops_and_messages_alone(const Program& program) {
  return std::all_of(program.instructions.begin(), program.instructions.end(),
                     [](const Instruction& instruction) {
                       return is_compute(instruction.op.kind) || is_message(instruction.op.kind);
                     });
}

std::variant<Posted, Deadlock> post(const ValidSchedule& schedule, LowerOptions options) {
  options.mode = P2pMode::kDataflow;
  auto lowered = lower(schedule, options);
  if (auto* const deadlock = std::get_if<Deadlock>(&lowered)) return std::move(*deadlock);
  Posted posted{std::get<Program>(std::move(lowered)), {}, {}};
  posted.is_in_step = options.posting == ReceivePosting::kAsap && !posts_messages(schedule) &&
                      has_ops_and_messages_alone(posted.dataflow);
  if (posted.is_in_step) return posted;
  const std::vector<RankOrder> lists = make_posted_lists(schedule, options.posting);
  posted.steps = find_steps(schedule, posted.dataflow, lists);
  posted.swapped = find_swapped_messages(schedule, lists);
  return posted;
}

/// The mode with all the waits of this one, and more: where it cannot deadlock, this one cannot.
/// A rank that blocks at every message of its list has passed everything that a queue, a batch or a
/// blocking send waits for; a send that waits for its receive needs no slot.
std::optional<P2pMode> stricter(P2pMode mode) {
  switch (mode) {
    case P2pMode::kFifo: return P2pMode::kEager;
    case P2pMode::kEager: return P2pMode::kRendezvous;
    case P2pMode::kRendezvous:
    case P2pMode::kHostSend:
    case P2pMode::kBatched: return P2pMode::kHostRendezvous;
    case P2pMode::kDataflow:
    case P2pMode::kHostRendezvous: return std::nullopt;
  }
  return std::nullopt;
}

/// The verdict on every mode. A mode is run only if a stricter one deadlocks.
class Verdicts {
 public:
  Verdicts(const Posted& posted, std::int32_t slots) : posted_(posted), slots_(slots) {}

  const std::optional<Deadlock>& operator()(P2pMode mode) {
    auto& known = deadlocks_[static_cast<std::size_t>(mode)];
    if (known) return *known;
    const std::optional<P2pMode> more = stricter(mode);
    const bool is_sound = posted_.is_in_step || (more && !(*this)(*more));
    known = is_sound ? std::nullopt : posted_.find_deadlock(mode, slots_);
    return *known;
  }

  std::optional<std::int32_t> slots_needed() {
    if (!(*this)(P2pMode::kRendezvous)) return 0;
    if ((*this)(P2pMode::kFifo)) return std::nullopt;
    const auto are_too_few = [&](std::int32_t slots) {
      return posted_.find_deadlock(P2pMode::kEager, slots).has_value();
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

 private:
  const Posted& posted_;
  std::int32_t slots_;
  std::array<std::optional<std::optional<Deadlock>>, kP2pModes.size()> deadlocks_;  ///< [mode]
};

}  // namespace

MessageVerdict check_messages(const ValidSchedule& schedule, const LowerOptions& options) {
  auto posted = post(schedule, options);
  MessageVerdict verdict;
  auto* const sound = std::get_if<Posted>(&posted);
  if (sound == nullptr) {  // Ops that wait for each other deadlock in every mode.
    for (const Named<P2pMode>& mode : kP2pModes)
      verdict.modes.push_back({mode.choice, std::get<Deadlock>(posted)});
    return verdict;
  }
  Verdicts verdicts(*sound, options.eager_slots);
  for (const Named<P2pMode>& mode : kP2pModes)
    verdict.modes.push_back({mode.choice, verdicts(mode.choice)});
  verdict.eager_slots = verdicts.slots_needed();
  verdict.swapped = std::move(sound->swapped);
  return verdict;
}

}  // namespace bubblescope::inline sim
