// Sends a request and a reply for each copy.
#include "exec/runtime/remote_copies.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Precedes the data of a request or reply.
struct CopyHeader {
  std::uint32_t step = 0;
  InstructionId copy = 0;
};

}  // namespace

bool crosses_ranks(const Instruction& instruction) {
  return is_copy(instruction.op.kind) && instruction.peer != instruction.rank;
}

RemoteCopies::RemoteCopies(const PayloadCodec& payload_codec, const Program& program,
                           Transport& transport)
    : payload_codec_(payload_codec), program_(program), transport_(transport) {
  takes_part_ = payload_codec.keep &&
                std::any_of(program.instructions.begin(), program.instructions.end(),
                            [here = transport.self().rank](const Instruction& instruction) {
                              return crosses_ranks(instruction) &&
                                     (instruction.rank == here || instruction.peer == here);
                            });
}

void RemoteCopies::begin_step(std::uint32_t step) {
  step_ = step;
  answers_.clear();
}

void RemoteCopies::copy_remote(InstructionId copy, const std::function<bool()>& wait) {
  const Instruction& instruction = program_.instructions[copy];
  if (!takes_part_ || !crosses_ranks(instruction)) return;
  transport_.send(instruction.peer, MessageTag::kCopy,
                  blob_of(CopyHeader{step_, copy}, payload_codec_.pack(copy)));
  std::optional<Blob> answer;
  while (!(answer = find_answer(copy)))
    if (!wait()) return;
  payload_codec_.unpack(copy, *answer);
}

std::optional<Blob> RemoteCopies::find_answer(InstructionId copy) {
  const std::lock_guard lock(mutex_);
  auto node = answers_.extract(copy);
  return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
}

bool RemoteCopies::serve() {
  if (!takes_part_) return false;
  const std::vector<Message> messages = transport_.poll(MessageTag::kCopy);
  for (const Message& message : messages) take(message);
  return !messages.empty();
}

/// Handles a request or a reply. Messages from an earlier step are leftovers of an abort; ignore
/// them.
void RemoteCopies::take(const Message& message) {
  BlobReader reader(message.payload);
  const auto header = reader.read<CopyHeader>();
  if (header.step != step_) return;
  Blob moved = reader.read_all<std::byte>();
  const Instruction* const copy =
      header.copy < program_.size() ? &program_.instructions[header.copy] : nullptr;
  if (copy != nullptr && crosses_ranks(*copy) && copy->rank == message.from &&
      copy->peer == transport_.self().rank)
    return transport_.send(message.from, MessageTag::kCopy,
                           blob_of(header, payload_codec_.keep(header.copy, moved)));
  if (copy == nullptr || !crosses_ranks(*copy) || copy->rank != transport_.self().rank ||
      copy->peer != message.from)
    throw Error(Fault::kMachine,
                "rank " + std::to_string(message.from) +
                    " sent an invalid message: a copy that concerns neither it nor this rank");
  const std::lock_guard lock(mutex_);
  answers_[header.copy] = std::move(moved);
}

}  // namespace bubblescope::exec
