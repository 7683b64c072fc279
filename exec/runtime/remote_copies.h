// Copies of saved activations to the memory of another process, the offload target, and back
// (`bpipe`). The rank that copies sends a request, and waits for the reply of the offload target,
// which polls until the last rank has ended the step.
//
//   evict:  rank 0 -> target: activations      target -> rank 0: empty reply
//   load:   rank 0 -> target: empty request    target -> rank 0: activations
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "exec/runtime/transport.h"
#include "exec/runtime/work.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Whether the instruction copies to another rank's memory, or back.
bool crosses_ranks(const Instruction& instruction);

/// Any thread may call copy_remote() and serve().
class RemoteCopies {
 public:
  /// The arguments are not copied.
  RemoteCopies(const PayloadCodec& payload_codec, const Program& program, Transport& transport);

  /// Call only while no lane runs.
  void begin_step(std::uint32_t step);

  /// Performs a copy, if its memory belongs to another process. `wait` polls for messages, and
  /// returns false once the step was aborted.
  void copy_remote(InstructionId copy, const std::function<bool()>& wait);

  /// Answers requests and stores replies. Returns false if no message had arrived. Throws Error for
  /// a malformed message.
  bool serve();

 private:
  void take(const Message& message);
  std::optional<Blob> find_answer(InstructionId copy);

  const PayloadCodec& payload_codec_;
  const Program& program_;
  Transport& transport_;
  bool takes_part_ = false;  ///< this rank offloads to another, or is an offload target
  std::uint32_t step_ = 0;
  std::mutex mutex_;
  std::map<InstructionId, Blob> answers_;
};

}  // namespace bubblescope::exec
