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

namespace bubblescope {

/// Larger numbers are refused: they are typing errors that would ask for gigabytes.
inline constexpr std::int32_t kMaxStage = 65'535;
inline constexpr std::int32_t kMaxMicrobatch = 16'777'215;
inline constexpr std::int32_t kMaxSlice = 32'766;

enum class CellGrammar : std::uint8_t { kPytorch, kOwn };

/// What a cell says: one op, two where it is a pair, or what is wrong with it.
struct Cell {
  std::array<Op, 2> ops;
  std::size_t count = 0;
  std::string fault;  ///< goes on after the cell's text: "has no micro-batch; write 0F0"

  bool sound() const { return fault.empty(); }
};

/// Reads a whole cell without blanks around it. Never throws: the caller knows where the cell is.
Cell parse_cell(std::string_view text, CellGrammar grammar);

/// Writes the cell that begins at ops[at] and returns where the next one begins.
std::size_t append_cell(std::string& out, const RankOrder& ops, std::size_t at,
                        CellGrammar grammar);

/// How many cells the first `count` ops of a list fill: a pair is one.
std::size_t cell_count(const RankOrder& ops, std::size_t count);

/// Takes the blanks (space, tab, line ends) off both ends.
std::string_view strip(std::string_view text);

/// The text in quotes for a message: cut to 40 letters, unprintable ones as \x00.
std::string quote(std::string_view text);

}  // namespace bubblescope
