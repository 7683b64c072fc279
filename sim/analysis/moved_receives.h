// Compares posted lists that differ in the positions of their receives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// A receive that changes its position: it is taken out, and put directly before a cell that stays.
struct MovedReceive {
  std::int32_t rank = 0;
  Op receive;
  std::optional<Op> before;     ///< empty: at the end
  std::int32_t occurrence = 1;  ///< which of the cells equal to `before`, from 1
};

/// The receives to move, as few as possible, in the order in which they can be moved one after the
/// other. Empty if the lists also differ in other cells.
std::optional<std::vector<MovedReceive>> find_moved_receives(std::int32_t rank,
                                                             const RankOrder& from,
                                                             const RankOrder& to);

/// "rank 0: post 0RECV_B0 before 0SEND_F1". The two halves of an overlapped pair are one cell.
std::string to_string(const MovedReceive& move);

}  // namespace bubblescope::inline sim
