// PyTorch's schedule CSV, as torch.distributed.pipelining loads and dumps it: one row per rank, one
// cell per action, no header.
//
//   0F0,0F1,,1B0                               compute only; a blank cell is an idle slot
//   0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0    with communications; the waits since PyTorch 2.15
//   (0F7;7B3)OVERLAP_F_B                       an overlapped pair is one cell
#pragma once

#include <string>
#include <string_view>

#include "sim/ir/pytorch_lists.h"
#include "sim/ir/schedule.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::traces {

/// Reads either kind, strictly: every cell must be a whole action. The schedule is named after the
/// file. Throws Error: file, row, column and text of the first fault, and what to write instead.
Schedule read_pytorch_csv(std::string_view text, const std::string& file);

/// Why PyTorch could not run the schedule from a CSV: the grammar has no words for slices,
/// recomputation, copies and replicas of a stage, and the runtime expects every micro-batch in
/// every stage. Empty if it could.
std::string why_not_pytorch_csv(const Schedule& schedule);

/// Compute ops and idle slots; messages are left out. Throws Error where the grammar has no words.
/// Two pipelines are written: readers such as read_pytorch_csv() take them.
std::string write_pytorch_csv(const Schedule& schedule);

/// Also writes all messages and the other actions of a release's lists (make_pytorch_lists). Throws
/// Error as above, and for schedules that deadlock.
std::string write_pytorch_csv_comms(const ValidSchedule& schedule,
                                    const PytorchListOptions& options = {});

}  // namespace bubblescope::traces
