// Compares the least delays between neighbours with the times of ops.
#include "traces/measured/missing_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"

namespace bubblescope::traces {

namespace {

/// As a fraction of the ops that a missing rank would have run.
constexpr double kLong = 0.5;

/// The least delay of the messages from one rank to another one, by kind of message.
struct Way {
  std::map<OpKind, Nanos> least;
  void add(OpKind kind, Nanos delay) {
    const auto [found, is_new] = least.emplace(kind, delay);
    if (!is_new) found->second = std::min(found->second, delay);
  }
};

class Ways {
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

  /// The neighbours with the longest delay for the ops between them.
  std::optional<std::string> describe_longest() {
    std::optional<std::string> text;
    double longest = kLong;
    for (const auto& [ranks, way] : ways_) {
      Nanos delay = 0;
      Nanos ops = 0;
      for (const auto& [kind, least] : way.least) {
        delay += least;
        ops += usual(kind == OpKind::kSendBackward);
      }
      if (ops == 0 || static_cast<double>(delay) <= longest * static_cast<double>(ops)) continue;
      longest = static_cast<double>(delay) / static_cast<double>(ops);
      text = fmt::format(
          "messages between rank {} and rank {} take at least {} there and back, and ops {}: the "
          "trace of a rank between them seems to be missing",
          ranks.first, ranks.second, to_text(delay), to_text(ops));
    }
    return text;
  }

  Nanos usual(bool backward) {
    std::vector<Nanos>& of_kind = durations_[backward];
    return of_kind.empty() ? 0 : quantile(of_kind, 50);
  }

 private:
  void add_message(const MeasuredStep& step, const Instruction& message, InstructionId id,
                   InstructionId consumer) {
    const InstructionId producer = step.program.dependencies_of(id).front();
    const std::int32_t first = std::min(message.rank, message.peer);
    const std::int32_t second = std::max(message.rank, message.peer);
    // Chunks that continue on another rank may wait there for their turn.
    if (second != first + 1) return;
    ways_[{first, second}].add(message.op.kind,
                               step.timeline.start[consumer] - step.timeline.end[producer]);
  }

  std::map<std::pair<std::int32_t, std::int32_t>, Way> ways_;
  std::map<bool, std::vector<Nanos>> durations_;
};

/// How long the last rank waits before its first backward, in the step where it waits least.
Nanos find_turning_time(std::span<const MeasuredStep> steps) {
  std::optional<Nanos> least;
  for (const MeasuredStep& step : steps) {
    Nanos free = 0;
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const Instruction& one = step.program.instructions[id];
      if (!is_compute(one.op.kind) || one.rank + 1 != step.program.ranks) continue;
      const Nanos waited = step.timeline.start[id] - free;
      free = step.timeline.end[id];
      if (!gives_input_grad(one.op.kind)) continue;
      least = std::min(least.value_or(waited), waited);
      break;
    }
  }
  return least.value_or(0);
}

}  // namespace

std::optional<std::string> describe_missing_neighbours(std::span<const MeasuredStep> steps) {
  Ways ways;
  for (const MeasuredStep& step : steps) ways.add(step);
  if (std::optional<std::string> between = ways.describe_longest()) return between;
  const Nanos ops = ways.usual(false) + ways.usual(true);
  const Nanos waited = find_turning_time(steps);
  if (static_cast<double>(waited) <= kLong * static_cast<double>(ops)) return {};
  return fmt::format(
      "the last of the ranks waits {} before its first backward, and a forward and a backward take "
      "{}: the trace of a rank behind it seems to be missing",
      to_text(waited), to_text(ops));
}

}  // namespace bubblescope::traces
