// A question and an answer for each copy.
#include "exec/mpi_copies.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// Before what a copy moves.
struct CopyHeader {
  std::uint32_t step = 0;
  InstructionId copy = 0;
};

Blob to_letter(const CopyHeader& header, const Blob& moved) {
  BlobWriter writer;
  writer.write(header);
  writer.write_all(moved);
  return writer.take();
}

bool leaves_its_rank(const Instruction& instruction) {
  return is_copy(instruction.op.kind) && instruction.peer != instruction.rank;
}

}  // namespace

MpiCopies::MpiCopies(const Cargo& cargo, const Program& program, MpiPort& port)
    : cargo_(cargo), program_(program), port_(port) {
  takes_part_ = cargo.keep && std::any_of(program.instructions.begin(), program.instructions.end(),
                                          [&port](const Instruction& instruction) {
                                            return leaves_its_rank(instruction) &&
                                                   (instruction.rank == port.rank() ||
                                                    instruction.peer == port.rank());
                                          });
}

void MpiCopies::begin_step(std::uint32_t step) {
  step_ = step;
  answers_.clear();
}

void MpiCopies::move(InstructionId copy, const std::function<bool()>& wait) {
  const Instruction& instruction = program_.instructions[copy];
  if (!takes_part_ || !leaves_its_rank(instruction)) return;
  port_.send(instruction.peer, Channel::kCopy, to_letter({step_, copy}, cargo_.pack(copy)));
  std::optional<Blob> answer;
  while (!(answer = find_answer(copy)))
    if (!wait()) return;
  cargo_.unpack(copy, *answer);
}

std::optional<Blob> MpiCopies::find_answer(InstructionId copy) {
  const std::lock_guard lock(mutex_);
  auto node = answers_.extract(copy);
  return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
}

bool MpiCopies::serve() {
  if (!takes_part_) return false;
  const std::vector<Letter> letters = port_.look(Channel::kCopy);
  for (const Letter& letter : letters) take(letter);
  return !letters.empty();
}

/// What is of an earlier step is late news of one that was stopped.
void MpiCopies::take(const Letter& letter) {
  BlobReader reader(letter.bytes);
  const auto header = reader.read<CopyHeader>();
  if (header.step != step_) return;
  Blob moved = reader.read_all<std::byte>();
  const Instruction* const copy =
      header.copy < program_.size() ? &program_.instructions[header.copy] : nullptr;
  if (copy != nullptr && leaves_its_rank(*copy) && copy->rank == letter.peer &&
      copy->peer == port_.rank())
    return port_.send(letter.peer, Channel::kCopy,
                      to_letter(header, cargo_.keep(header.copy, moved)));
  if (copy == nullptr || !leaves_its_rank(*copy) || copy->rank != port_.rank() ||
      copy->peer != letter.peer)
    throw Error(Fault::kMachine, "rank " + std::to_string(letter.peer) +
                                     " sent garbage: a copy that is neither its own nor ours");
  const std::lock_guard lock(mutex_);
  answers_[header.copy] = std::move(moved);
}

}  // namespace bubblescope
