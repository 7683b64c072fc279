// Copies of activations between the memories of two processes. The rank that copies asks its
// keeper, which answers whenever it looks: in its lanes, and while it waits for the end of the
// step.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "exec/runtime/transport.h"
#include "exec/runtime/work.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Any thread may call.
class RemoteCopies {
 public:
  /// Nothing is copied.
  RemoteCopies(const PayloadCodec& payload_codec, const Program& program, Transport& transport);

  /// While no lane runs.
  void begin_step(std::uint32_t step);

  /// Brings what a copy carries to its keeper, or from it, if another process has that memory.
  /// `wait` lets messages in, and is false once the step was stopped.
  void move(InstructionId copy, const std::function<bool()>& wait);

  /// Answers who asks, and takes in what was answered. False: nothing came. Throws Error for
  /// messages that cannot be.
  bool serve();

 private:
  void take(const Message& message);
  std::optional<Blob> find_answer(InstructionId copy);

  const PayloadCodec& payload_codec_;
  const Program& program_;
  Transport& transport_;
  bool takes_part_ = false;  ///< this rank copies to another, or keeps what another copies
  std::uint32_t step_ = 0;
  std::mutex mutex_;
  std::map<InstructionId, Blob> answers_;
};

}  // namespace bubblescope::exec
