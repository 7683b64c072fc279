// A Program: instructions in lanes. *An instruction starts when it heads its lane and all its
// dependencies have ended.* That is the whole rule of the machine, for the simulator as for the
// executor: a lane is a CUDA stream or a worker's queue, a dependency is an event wait.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// Index of an instruction in its Program.
using InstructionId = std::uint32_t;

/// The id of no instruction.
inline constexpr InstructionId kNoInstruction = 0xffffffffu;

/// The lane of an instruction that occupies nothing: it starts as soon as its dependencies end.
/// A message that only takes time, such as one over a link that is never full, is one.
inline constexpr std::uint32_t kNoLane = 0xffffffffu;

/// An in-order queue of a rank.
struct Lane {
  std::int32_t rank = 0;
  std::string name;  ///< "compute", "communication", "host"; message lanes name their link
};

/// Whether an instruction does something or only stands in a queue for a message. Posts and waits
/// take no time of their own: what they cost is the time for which they hold up their lane.
enum class Role : std::uint8_t {
  kWork,  ///< a compute op, or a message on its way
  kPost,  ///< a send or receive becomes known to the peer
  kWait,  ///< a send or receive lets its queue go on
};

struct Instruction {
  Op op;                   ///< for a message: the SEND of what its producer made
  std::uint32_t lane = 0;  ///< index into Program::lanes, or kNoLane
  std::int32_t rank = 0;   ///< the rank that runs it; for a message, the sender
  std::int32_t peer = 0;   ///< for a message, the receiver; for its posts and waits, the other
                           ///< end; else the rank itself
  Role role = Role::kWork;
};

/// Flat, because millions of instructions must fit and stream.
/// Invariant: instructions stand in a topological order. Every dependency of an instruction and
/// everything before it in its lane has a smaller id, so one loop from 0 runs a Program.
struct Program {
  std::int32_t ranks = 0;
  std::vector<Lane> lanes;  ///< lane r is the compute lane of rank r
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> dependency_begin;  ///< one entry per instruction, and the end
  std::vector<InstructionId> dependencies;

  InstructionId size() const { return static_cast<InstructionId>(instructions.size()); }
  std::span<const InstructionId> dependencies_of(InstructionId id) const {
    const std::uint32_t begin = dependency_begin[id];
    return {dependencies.data() + begin, dependency_begin[id + 1] - begin};
  }
};

/// True for a message on its way; false for the posts and waits at its two ends.
inline bool is_message(const Instruction& instruction) {
  return instruction.role == Role::kWork && is_message(instruction.op.kind);
}

/// One instruction in a lane that can never start, and the one in a lane for which it waits, if
/// need be for a message that only that one could let go.
struct Wait {
  std::int32_t rank = 0;
  Op op;
  std::int32_t awaited_rank = 0;
  Op awaited;
};

/// A cycle of instructions in which each waits for the next and the last for the first.
using Deadlock = std::vector<Wait>;

/// "rank 0 at 0B0 waits for 1B0 of rank 1; rank 1 at 1F1 waits for ...": a cycle in words.
std::string to_string(const Deadlock& deadlock);

}  // namespace bubblescope
