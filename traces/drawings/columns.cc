// Chooses the instruction that each column of a drawing shows.
#include "traces/drawings/columns.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace bubblescope::traces {

namespace {

/// The starts of a grid's columns, one after the other, without a division for each.
class ColumnStarts {
 public:
  explicit ColumnStarts(const TimeGrid& grid)
      : columns_(grid.columns),
        whole_(grid.span / grid.columns),
        rest_(grid.span % grid.columns),
        start_(grid.origin) {}

  Nanos start() const { return start_; }

  void advance() {
    start_ += whole_;
    remainder_ += rest_;
    if (remainder_ < columns_) return;
    remainder_ -= columns_;
    ++start_;
  }

 private:
  Nanos columns_;
  Nanos whole_;
  Nanos rest_;
  Nanos start_;
  Nanos remainder_ = 0;
};

/// The time of a column by kind, in order of appearance.
class KindTimes {
 public:
  void add(OpKind kind, std::optional<InstructionId> id, Nanos time) {
    if (time <= 0) return;
    const auto known = std::find_if(shares_.begin(), shares_.end(),
                                    [&](const Share& share) { return share.kind == kind; });
    Share& share = known == shares_.end() ? shares_.emplace_back(Share{kind, id, 0, 0, 0}) : *known;
    share.time += time;
    share.unseen = 0;
    if (time <= share.longest) return;
    share.longest = time;
    share.id = id;
  }

  /// Chooses the largest share of a column. The rest is dropped, or carried over to later columns.
  std::optional<InstructionId> settle(Nanos column, Paint paint) {
    const auto largest = std::max_element(
        shares_.begin(), shares_.end(),
        [](const Share& left, const Share& right) { return left.time < right.time; });
    if (largest == shares_.end()) return {};
    const std::optional<InstructionId> id = largest->id;
    if (paint == Paint::kLargestShare) {
      shares_.clear();
      return id;
    }
    largest->time -= column;
    for (Share& share : shares_) {
      share.longest = 0;
      ++share.unseen;
    }
    std::erase_if(shares_, [](const Share& share) { return share.unseen > kKept; });
    return id;
  }

 private:
  struct Share {
    OpKind kind;
    std::optional<InstructionId> id;
    Nanos time;
    Nanos longest;
    int unseen;  ///< columns since something was last added
  };

  /// Time that a column leaves out is carried over this many columns; beyond that it would show in
  /// the wrong place.
  static constexpr int kKept = 4;

  std::vector<Share> shares_;
};

}  // namespace

std::vector<std::vector<InstructionId>> find_compute_lanes(const Program& program) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(program.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return find_compute_lanes(program, ranks);
}

std::vector<std::vector<InstructionId>> find_compute_lanes(const Program& program,
                                                           std::span<const std::int32_t> ranks) {
  std::vector<std::vector<InstructionId>> lanes(program.ranks);
  std::vector<bool> is_wanted(lanes.size(), false);
  for (const std::int32_t rank : ranks) is_wanted[static_cast<std::size_t>(rank)] = true;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane < lanes.size() && is_wanted[lane]) lanes[lane].push_back(id);
  }
  return lanes;
}

std::vector<CopyLane> find_copy_lanes(const Program& program) {
  std::map<std::pair<std::int32_t, OpKind>, CopyLane> lanes;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (!is_copy(op.kind)) continue;
    CopyLane& copies = lanes[{rank, op.kind}];
    copies.rank = rank;
    copies.kind = op.kind;
    copies.instructions.push_back(id);
  }
  std::vector<CopyLane> sorted;
  for (auto& [place, lane] : lanes) sorted.push_back(std::move(lane));
  return sorted;
}

TimeGrid divide_step(const StepRecord& record, int columns) {
  const Program& program = record.program;
  const Timeline& timeline = record.timeline;
  if (program.size() == 0) return {0, 1, columns};
  Nanos origin = timeline.start[0];
  Nanos last = std::numeric_limits<Nanos>::min();
  for (InstructionId id = 0; id < program.size(); ++id) {
    origin = std::min(origin, timeline.start[id]);
    const bool computes = program.instructions[id].lane < static_cast<std::uint32_t>(program.ranks);
    if (!computes && !is_collective(program.instructions[id].op.kind)) continue;
    last = std::max(last, timeline.end[id]);
  }
  return {origin, std::max(last, origin + 1) - origin, columns};
}

PaintedRow paint(const StepRecord& record, std::span<const InstructionId> lane,
                 const TimeGrid& grid, Paint paint) {
  const Timeline& timeline = record.timeline;
  PaintedRow row(grid.columns);
  KindTimes tally;
  std::size_t at = 0;
  ColumnStarts starts(grid);
  for (int column = 0; column < grid.columns; ++column) {
    const Nanos begin = starts.start();
    starts.advance();
    const Nanos end = starts.start();
    Nanos now = begin;
    while (at < lane.size() && timeline.start[lane[at]] < end) {
      const InstructionId id = lane[at];
      tally.add(OpKind::kIdle, {}, timeline.start[id] - now);
      now = std::max(now, timeline.start[id]);
      const Nanos until = std::min(end, timeline.end[id]);
      tally.add(record.program.instructions[id].op.kind, id, until - now);
      now = std::max(now, until);
      if (timeline.end[id] > end) break;
      ++at;
    }
    tally.add(OpKind::kIdle, {}, end - now);
    row[column] = tally.settle(end - begin, paint);
  }
  return row;
}

}  // namespace bubblescope::traces
