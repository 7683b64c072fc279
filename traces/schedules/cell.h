// One cell of a schedule as text: an op, an overlapped pair, or nothing.
//
// PyTorch's grammar, where nothing is a blank cell:
//   2F0  0SEND_F3  3UNSHARD  (0F7;7B3)OVERLAP_F_B
// Ours adds slices, recomputation, and a mark for nothing:
//   2F0.1  2R0  _
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/ir/schedule.h"
#include "sim/ir/size_limits.h"

namespace bubblescope::traces {

/// Larger numbers are refused: they are typing errors that would allocate gigabytes.
inline constexpr std::int32_t kMaxStage = kMaxStages - 1;
inline constexpr std::int32_t kMaxMicrobatch = kMaxMicrobatches - 1;
inline constexpr std::int32_t kMaxSlice = 32'766;

enum class CellGrammar : std::uint8_t { kPytorch, kOwn };

/// The content of a cell: one op, two ops for a pair, or the fault that was found.
struct Cell {
  std::array<Op, 2> ops;
  std::size_t count = 0;
  std::string fault;  ///< follows the cell's text in a message: "has no micro-batch; write 0F0"

  bool sound() const { return fault.empty(); }
};

/// Reads a whole cell without surrounding blanks. Never throws: the caller knows where the cell is.
Cell parse_cell(std::string_view text, CellGrammar grammar);

/// Writes the cell that begins at ops[at] and returns where the next one begins.
std::size_t append_cell(std::string& out, const RankOrder& ops, std::size_t at,
                        CellGrammar grammar);

/// Counts the cells of the first `count` ops of a list; a pair is one cell.
std::size_t count_cells(const RankOrder& ops, std::size_t count);

/// Removes blanks (space, tab, line ends) from both ends.
std::string_view strip(std::string_view text);

}  // namespace bubblescope::traces
