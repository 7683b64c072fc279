// A rank's work in columns of equal width, for terminals and small pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/files/format.h"

namespace bubblescope::traces {

/// Divides [origin, origin + span) into equal columns.
struct TimeGrid {
  Nanos origin = 0;
  Nanos span = 1;
  int columns = 1;

  /// Returns the start of a column, rounded down; column `columns` starts at the end.
  Nanos start_of(int column) const {
    return origin + span / columns * column + span % columns * column / columns;
  }
};

/// Per column, the instruction that it shows; none where the rank is idle for most of the column.
using PaintedRow = std::vector<std::optional<InstructionId>>;

/// Returns the instructions of each rank's compute lane, in order; with `ranks`, of these alone.
std::vector<std::vector<InstructionId>> find_compute_lanes(const Program& program);
std::vector<std::vector<InstructionId>> find_compute_lanes(const Program& program,
                                                           std::span<const std::int32_t> ranks);

/// A lane in which a rank's activations are copied out of its memory, or back.
struct CopyLane {
  std::int32_t rank = 0;
  OpKind kind = OpKind::kEvict;  ///< the kind of all its instructions
  std::vector<InstructionId> instructions;
};

/// The lanes with copies, by rank, evictions first.
std::vector<CopyLane> find_copy_lanes(const Program& program);

/// Divides the time from the start of the step, which may be before its first op, to the last end
/// of all compute ops, optimizer steps and collectives into `columns`.
TimeGrid divide_step(const StepRecord& record, int columns);

enum class Paint : std::uint8_t {
  /// A column shows the kind (F, B, ..., or idle) that fills most of it, the earlier one on a tie.
  /// Anything at least one column long is visible.
  kLargestShare,
  /// For columns that hold many ops: time that a column leaves out is added to the next, so that
  /// every kind fills columns in proportion to its time, and short idle times show once they add
  /// up.
  kInProportion,
};

/// Paints one lane. A kind is shown by its longest instruction in the column. Linear in the number
/// of instructions and columns.
PaintedRow paint(const StepRecord& record, std::span<const InstructionId> lane,
                 const TimeGrid& grid, Paint paint);

}  // namespace bubblescope::traces
