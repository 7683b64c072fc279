// A Program: instructions in lanes. *An instruction starts when it heads its lane and all its
// dependencies have ended.* This is the only rule of the machine, for the simulator and the
// executor: a lane is a CUDA stream or a worker's queue, a dependency is an event wait.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Index of an instruction in its Program.
using InstructionId = std::uint32_t;

/// Stands for "no instruction".
inline constexpr InstructionId kNoInstruction = 0xffffffffu;

/// The lane of an instruction that occupies no queue: it starts as soon as its dependencies end. An
/// example is a message over a link without contention.
inline constexpr std::uint32_t kNoLane = 0xffffffffu;

/// An in-order queue of a rank.
struct Lane {
  std::int32_t rank = 0;
  std::string name;  ///< "compute", "communication", kHostLane; message lanes name their link
};

/// The name of the lane in which a rank posts its messages and waits for them.
inline constexpr const char* kHostLane = "host";

/// Whether an instruction does work or only occupies its queue for a message. Posts and waits take
/// no time themselves; they cost the time for which they block their lane.
enum class Role : std::uint8_t {
  kWork,  ///< a compute op, or a message on its way
  kPost,  ///< makes a send or receive known to the peer
  kWait,  ///< blocks its queue until a send or receive is done
};

struct Instruction {
  Op op;                   ///< for a message: the SEND of its producer's value
  std::uint32_t lane = 0;  ///< index into Program::lanes, or kNoLane
  std::int32_t rank = 0;   ///< the rank that runs it; for a message, the sender
  /// For a message, the receiver; for its posts and waits, the other end; else the rank itself.
  std::int32_t peer = 0;
  Role role = Role::kWork;
};

/// Flat arrays, because millions of instructions must fit and stream. Invariant: instructions are
/// in topological order. Every dependency of an instruction and everything before it in its lane
/// has a smaller id, so one loop from 0 runs a Program.
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

/// True for a message in transit; false for the posts and waits at its two ends.
inline bool is_message(const Instruction& instruction) {
  return instruction.role == Role::kWork && is_message(instruction.op.kind);
}

/// True for the wait until a micro-batch arrives, which occupies no rank.
inline bool is_arrival(const Instruction& instruction) {
  return instruction.op.kind == OpKind::kIdle && instruction.role == Role::kWork;
}

/// The op, or "0ARRIVE2" for the wait until micro-batch 2 arrives at stage 0.
std::string to_string(const Instruction& instruction);

/// Two instructions in lanes: `op` can never start because it waits for `awaited`, possibly through
/// a message that only `awaited` could release.
struct Wait {
  std::int32_t rank = 0;
  Op op;
  std::int32_t awaited_rank = 0;
  Op awaited;
  bool by_after_edge = false;  ///< whether the two ranks are bound by an after edge, not a message
};

/// A cycle of instructions: each waits for the next, and the last for the first.
using Deadlock = std::vector<Wait>;

/// Describes a cycle: "rank 0 at 0B0 waits for 1B0 of rank 1; rank 1 at 1F1 waits for ...".
std::string to_string(const Deadlock& deadlock);

}  // namespace bubblescope::inline sim
