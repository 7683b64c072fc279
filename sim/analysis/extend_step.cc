// Follows and copies the instructions of a period.
#include "sim/analysis/extend_step.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/analysis/critical_path.h"

namespace bubblescope::inline sim {

namespace {

Nanos start_of(const ExtendedStep& step, InstructionId id) { return step.timeline.start[id]; }

bool is_after_cut(const ExtendedStep& step, InstructionId id) {
  return start_of(step, id) >= step.state.cut;
}

/// Maps an instruction of the short step to the one `copy` periods later; instructions before the
/// period stay in the short step while it has them.
ExtendedId shift(const ExtendedStep& step, InstructionId id, std::int64_t copy) {
  if (is_after_cut(step, id)) return {id, copy};
  while (copy > 0 && !step.state.is_in_period(start_of(step, id))) {
    id = step.state.next[id];
    --copy;
  }
  return {id, copy};
}

/// Whether no other instruction of a rank ends with its last one. If another does, find_last()
/// chooses by the order of their ids, which may be different in a longer step.
bool ends_alone(const ExtendedStep& step, InstructionId last) {
  const std::int32_t rank = step.program.instructions[last].rank;
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (id != last && step.timeline.end[id] == step.timeline.end[last] &&
        step.program.instructions[id].rank == rank)
      return false;
  return true;
}

}  // namespace

std::optional<std::vector<ExtendedId>> extend_critical_path(const ExtendedStep& step) {
  const InstructionId last = find_last(step.program, step.timeline);
  if (!is_after_cut(step, last) || !ends_alone(step, last)) return {};
  std::vector<ExtendedId> path;
  ExtendedId at{last, step.copies};
  for (;;) {
    const Instruction& instruction = step.program.instructions[at.id];
    if (instruction.role == Role::kWork && !is_arrival(instruction)) path.push_back(at);
    const std::optional<InstructionId> blocker = step.blockers.blocker(at.id);
    if (!blocker) break;
    at = shift(step, *blocker, at.copy);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

namespace {

/// Checks that slack repeats like times.
class SlackCheck {
 public:
  SlackCheck(const ExtendedStep& step, const std::vector<Nanos>& slack)
      : step_(step), slack_(slack), before_(step.program.size(), kNoInstruction) {
    for (InstructionId id = 0; id < step.program.size(); ++id)
      if (!is_after_cut(step, id) && step.state.next[id] != kNoInstruction) follow(id);
  }

  bool run() const {
    const Nanos end = find_step_bounds(step_.timeline).end;
    for (InstructionId id = 0; id < step_.program.size(); ++id) {
      if (!is_after_cut(step_, id) && slack_[id] >= end - step_.timeline.end[id]) return false;
      bool keeps = true;
      step_.blockers.for_each_awaited(id, [&](InstructionId awaited) {
        if (is_after_cut(step_, awaited) || is_implied(id, awaited)) return;
        keeps = keeps && (is_after_cut(step_, id) ? recurs_before(id) : recurs_later(id, awaited));
      });
      if (!keeps) return false;
    }
    return true;
  }

 private:
  /// Whether an instruction waits for the other anyway, because it is earlier in its lane.
  bool is_implied(InstructionId id, InstructionId awaited) const {
    const std::uint32_t lane = step_.program.instructions[id].lane;
    return lane != kNoLane && step_.program.instructions[awaited].lane == lane &&
           step_.blockers.previous_in_lane(id) != awaited;
  }

  void follow(InstructionId id) {
    for (InstructionId next = step_.state.next[id];
         next != kNoInstruction && before_[next] == kNoInstruction; next = step_.state.next[next]) {
      before_[next] = id;
      id = next;
    }
  }

  /// Whether what waits across the cut has the slack of the same instructions back to the period.
  bool recurs_before(InstructionId id) const {
    for (InstructionId at = id; is_after_cut(step_, at); at = before_[at])
      if (before_[at] == kNoInstruction || !is_same_later(before_[at], at)) return false;
    return true;
  }

  /// Whether something in the period that waits for an earlier one waits again, with the same
  /// slack, for those of the period.
  bool recurs_later(InstructionId id, InstructionId awaited) const {
    if (!step_.state.is_in_period(start_of(step_, id))) return true;
    while (!step_.state.is_in_period(start_of(step_, awaited))) {
      const InstructionId earlier = id;
      awaited = step_.state.next[awaited];
      id = step_.state.next[id];
      if (id == kNoInstruction || !is_same_later(earlier, id) || !waits_for(id, awaited))
        return false;
    }
    return true;
  }

  bool is_same_later(InstructionId id, InstructionId later) const {
    return slack_[later] == slack_[id] &&
           start_of(step_, later) - start_of(step_, id) == step_.state.period;
  }

  bool waits_for(InstructionId id, InstructionId other) const {
    bool waits = false;
    step_.blockers.for_each_awaited(
        id, [&](InstructionId awaited) { waits = waits || awaited == other; });
    return waits;
  }

  const ExtendedStep& step_;
  const std::vector<Nanos>& slack_;
  std::vector<InstructionId> before_;  ///< the same instruction of a period earlier
};

}  // namespace

bool keeps_slack(const ExtendedStep& step, const std::vector<Nanos>& slack) {
  return SlackCheck(step, slack).run();
}

namespace {

/// Writes the excerpt part by part.
class ExcerptWriter {
 public:
  explicit ExcerptWriter(const ExtendedStep& step) : step_(step) {
    excerpt_.program.ranks = step.program.ranks;
    excerpt_.program.lanes = step.program.lanes;
    excerpt_.timeline.source = step.timeline.source;
    excerpt_.place.resize(step.program.size());
  }

  StepExcerpt run(const std::vector<ExtendedId>& path, std::span<const std::int32_t> ranks) && {
    excerpt_.path.resize(path.size());
    const std::vector<PathCopy> copied = list_copies(path);
    const std::vector<InstructionId> shown = list_shown(ranks);
    reserve(copied.size() + shown.size() * static_cast<std::size_t>(step_.copies));
    add_part(false);
    auto next = copied.begin();
    for (std::int64_t copy = 1; copy <= step_.copies; ++copy) {
      auto own = shown.begin();
      while (own != shown.end() || (next != copied.end() && next->copy == copy)) {
        const bool on_path =
            next != copied.end() && next->copy == copy && (own == shown.end() || next->id <= *own);
        const InstructionId id = on_path ? next->id : *own;
        if (own != shown.end() && *own == id) ++own;
        const InstructionId here = add(id, copy);
        if (on_path) excerpt_.path[(next++)->index] = here;
      }
    }
    add_part(true);
    for (std::size_t at = 0; at < path.size(); ++at)
      if (!is_copied(path[at])) excerpt_.path[at] = excerpt_.place[path[at].id];
    excerpt_.program.dependency_begin.assign(excerpt_.source.size() + 1, 0);
    return std::move(excerpt_);
  }

 private:
  /// An instruction of the path that is in a copy of the period.
  struct PathCopy {
    std::int64_t copy = 0;
    InstructionId id = 0;
    std::size_t index = 0;  ///< in the path
  };

  bool is_copied(const ExtendedId& at) const { return at.copy > 0 && !is_after_cut(step_, at.id); }

  std::vector<PathCopy> list_copies(const std::vector<ExtendedId>& path) const {
    std::vector<PathCopy> copied;
    for (std::size_t at = 0; at < path.size(); ++at)
      if (is_copied(path[at])) copied.push_back({path[at].copy, path[at].id, at});
    std::sort(copied.begin(), copied.end(), [](const PathCopy& left, const PathCopy& right) {
      return std::tie(left.copy, left.id) < std::tie(right.copy, right.id);
    });
    return copied;
  }

  /// Returns the ops of these ranks in the period.
  std::vector<InstructionId> list_shown(std::span<const std::int32_t> ranks) const {
    std::vector<bool> is_shown(static_cast<std::size_t>(step_.program.ranks), false);
    for (const std::int32_t rank : ranks) is_shown[static_cast<std::size_t>(rank)] = true;
    std::vector<InstructionId> shown;
    for (InstructionId id = 0; id < step_.program.size(); ++id) {
      const std::uint32_t lane = step_.program.instructions[id].lane;
      if (lane < is_shown.size() && is_shown[lane] && step_.state.is_in_period(start_of(step_, id)))
        shown.push_back(id);
    }
    return shown;
  }

  void reserve(std::size_t copied) {
    const std::size_t size = step_.program.size() + copied;
    excerpt_.program.instructions.reserve(size);
    excerpt_.timeline.start.reserve(size);
    excerpt_.timeline.end.reserve(size);
    excerpt_.source.reserve(size);
  }

  InstructionId add(InstructionId id, std::int64_t copy) {
    const Nanos later = copy * step_.state.period;
    Instruction& instruction =
        excerpt_.program.instructions.emplace_back(step_.program.instructions[id]);
    if (has_microbatch(instruction.op.kind))
      instruction.op.microbatch += static_cast<std::int32_t>(copy) * step_.state.microbatches;
    excerpt_.timeline.start.push_back(step_.timeline.start[id] + later);
    excerpt_.timeline.end.push_back(step_.timeline.end[id] + later);
    excerpt_.source.push_back(id);
    return static_cast<InstructionId>(excerpt_.source.size() - 1);
  }

  /// Adds what the short step has before or after the cut.
  void add_part(bool after_cut) {
    for (InstructionId id = 0; id < step_.program.size(); ++id)
      if (is_after_cut(step_, id) == after_cut)
        excerpt_.place[id] = add(id, after_cut ? step_.copies : 0);
  }

  const ExtendedStep& step_;
  StepExcerpt excerpt_;
};

}  // namespace

StepExcerpt make_excerpt(const ExtendedStep& step, const std::vector<ExtendedId>& path,
                         std::span<const std::int32_t> ranks) {
  return ExcerptWriter(step).run(path, ranks);
}

}  // namespace bubblescope::inline sim
