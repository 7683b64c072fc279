// The messages that brought the inputs of a process's ops, in an Nsight Systems recording.
//
// Megatron-LM's calls name their messages: recv_forward, send_forward_recv_backward. Other messages
// are known by their kernels alone, which show no direction. Such a kernel brought the input of an
// op if the device waited for it before that op:
//
//   |F2|   |F3|            |B0|             compute kernels
//     |-s2-| |-----r0------|                NCCL's SendRecv: r0 ends the waiting for B0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/measured/message_ranges.h"
#include "traces/measured/nsys_ranges.h"
#include "traces/measured/nsys_recording.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The message that brought an op's input.
struct Arrival {
  TimeSpan span;
  bool is_inferred = false;  ///< only from its end: it may as well be one that the rank sent
};

/// Sets the call that received the input of each forward and backward: the last one before it.
void find_received_calls(std::vector<OpRange>& ops, const std::vector<TimedCall>& calls);

/// The message kernels of one process that neither a call nor the range of an op contains.
class NsysMessages {
 public:
  /// Both are those of the process, by start.
  NsysMessages(const NsysRecording& recording, std::int64_t process,
               const std::vector<OpRange>& ops, const std::vector<TimedCall>& calls);

  /// The message that ends while the device waits for op `op`, the last one if there are several.
  std::optional<Arrival> find_awaited(std::size_t op, const TimeSpan& waiting) const;

 private:
  bool was_posted_within(const TimeSpan& host) const;

  std::vector<TimeSpan> messages_;              ///< by end
  std::vector<Nanos> posted_;                   ///< when each was launched, in order of time
  std::vector<std::optional<TimeSpan>> turns_;  ///< [op]: see find_turns() in the source
};

}  // namespace bubblescope::traces
