// Compares the least delays between neighbours with the times of ops.
#include "traces/measured/missing_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/ir/awaits_message.h"
#include "sim/ir/quantile.h"

namespace bubblescope::traces {

namespace {

/// As a fraction of the ops that a missing rank would have run.
constexpr double kLong = 0.75;

class Neighbours {
 public:
  void add(const MeasuredStep& step) {
    const Program& program = step.program;
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& one = program.instructions[id];
      const bool backward = gives_input_grad(one.op.kind);
      if (!backward && one.op.kind != OpKind::kForward) continue;
      durations_[backward].push_back(step.timeline.end[id] - step.timeline.start[id]);
      for (const InstructionId awaited : program.dependencies_of(id))
        if (is_message(program.instructions[awaited]))
          add_message(step, program.instructions[awaited], awaited, id);
    }
  }

  /// Returns the neighbours with the longest delay for the ops between them.
  std::optional<std::string> describe_longest() {
    std::optional<std::string> text;
    double longest = kLong;
    for (const auto& [ranks, delays] : min_delays_) {
      Nanos delay = 0;
      Nanos ops = 0;
      for (const auto& [kind, min_delay] : delays) {
        delay += min_delay;
        ops += median_duration(kind == OpKind::kSendBackward);
      }
      if (ops == 0 || static_cast<double>(delay) <= longest * static_cast<double>(ops)) continue;
      longest = static_cast<double>(delay) / static_cast<double>(ops);
      text = fmt::format(
          "messages between rank {} and rank {} take at least {}{}, and ops {}: the trace of a "
          "rank between them seems to be missing, unless their link is so slow",
          ranks.first, ranks.second, to_text(delay), delays.size() > 1 ? " there and back" : "",
          to_text(ops));
    }
    return text;
  }

  Nanos median_duration(bool backward) const {
    const std::vector<Nanos>& durations = durations_[backward];
    return durations.empty() ? 0 : quantile(durations, 50);
  }

 private:
  void add_message(const MeasuredStep& step, const Instruction& message, InstructionId id,
                   InstructionId consumer) {
    const auto awaited = step.program.dependencies_of(id);
    const auto producer = std::find_if(awaited.begin(), awaited.end(), [&](InstructionId other) {
      return is_compute(step.program.instructions[other].op.kind);
    });
    if (producer == awaited.end()) return;
    const std::int32_t first = std::min(message.rank, message.peer);
    const std::int32_t second = std::max(message.rank, message.peer);
    // Chunks that continue on another rank may wait there for their turn.
    if (second != first + 1) return;
    const Nanos delay = step.timeline.start[consumer] - step.timeline.end[*producer];
    const auto [found, is_new] = min_delays_[{first, second}].emplace(message.op.kind, delay);
    if (!is_new) found->second = std::min(found->second, delay);
  }

  /// The least delay of each kind of message between two neighbours, in whichever direction.
  std::map<std::pair<std::int32_t, std::int32_t>, std::map<OpKind, Nanos>> min_delays_;
  std::array<std::vector<Nanos>, 2> durations_;  ///< of forwards, and of backwards
};

/// How long the last rank waits before its first backward, in the step where it waits least; 0
/// where a message brings it a gradient, as on a V.
Nanos find_turning_time(std::span<const MeasuredStep> steps) {
  std::optional<Nanos> min_wait;
  for (const MeasuredStep& step : steps) {
    Nanos free = 0;
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const Instruction& one = step.program.instructions[id];
      if (!is_compute(one.op.kind) || one.rank + 1 != step.program.ranks) continue;
      const Nanos waited = step.timeline.start[id] - free;
      free = step.timeline.end[id];
      if (!gives_input_grad(one.op.kind)) continue;
      if (awaits_message(step.program, id)) return 0;
      min_wait = std::min(min_wait.value_or(waited), waited);
      break;
    }
  }
  return min_wait.value_or(0);
}

}  // namespace

std::optional<std::string> describe_missing_neighbours(std::span<const MeasuredStep> steps) {
  Neighbours neighbours;
  for (const MeasuredStep& step : steps) neighbours.add(step);
  if (std::optional<std::string> between = neighbours.describe_longest()) return between;
  const Nanos ops = neighbours.median_duration(false) + neighbours.median_duration(true);
  const Nanos waited = find_turning_time(steps);
  if (static_cast<double>(waited) <= kLong * static_cast<double>(ops)) return {};
  return fmt::format(
      "the last of the ranks waits {} before its first backward, and a forward and a backward take "
      "{}: the trace of a rank behind it seems to be missing",
      to_text(waited), to_text(ops));
}

}  // namespace bubblescope::traces
