// Puts arrivals in front of a Program's instructions.
#include "sim/predict/arrivals.h"

#include <fmt/format.h>

#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

void expect_one_each(const Schedule& schedule, std::span<const Nanos> arrivals) {
  const auto microbatches = static_cast<std::size_t>(schedule.shape.microbatches);
  if (arrivals.size() != microbatches)
    throw Error(fmt::format("`arrivals` has {}, but {} has {}; give one for each",
                            counted(arrivals.size(), "time"), schedule.name,
                            counted(microbatches, "micro-batch")));
}

/// Makes the wait for a micro-batch, at the rank that runs its first forward.
Instruction make_arrival(const Schedule& schedule, std::int32_t microbatch) {
  const std::int32_t stage =
      schedule.pipeline_of_microbatch(microbatch) * schedule.stages_per_pipeline();
  const std::int32_t rank = schedule.rank_of(stage, microbatch);
  return {{stage, microbatch, 0, OpKind::kIdle}, kNoLane, rank, rank};
}

}  // namespace

Program add_arrivals(Program program, const Schedule& schedule, std::span<const Nanos> arrivals) {
  expect_one_each(schedule, arrivals);
  Program added;
  std::vector<InstructionId> arrival_of(arrivals.size(), kNoInstruction);
  for (std::int32_t microbatch = 0; microbatch < schedule.shape.microbatches; ++microbatch) {
    if (arrivals[static_cast<std::size_t>(microbatch)] == 0) continue;
    arrival_of[static_cast<std::size_t>(microbatch)] = added.size();
    added.instructions.push_back(make_arrival(schedule, microbatch));
    added.dependency_begin.push_back(0);
  }
  const InstructionId count = added.size();
  if (count == 0) return program;
  added.ranks = program.ranks;
  added.lanes = std::move(program.lanes);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    added.instructions.push_back(instruction);
    added.dependency_begin.push_back(static_cast<std::uint32_t>(added.dependencies.size()));
    for (const InstructionId awaited : program.dependencies_of(id))
      added.dependencies.push_back(awaited + count);
    const Op& op = instruction.op;
    if (op.kind != OpKind::kForward || !schedule.is_first(op.stage)) continue;
    const InstructionId arrival = arrival_of[static_cast<std::size_t>(op.microbatch)];
    if (arrival != kNoInstruction) added.dependencies.push_back(arrival);
  }
  added.dependency_begin.push_back(static_cast<std::uint32_t>(added.dependencies.size()));
  return added;
}

std::vector<Nanos> price_arrivals(const Program& program, std::vector<Nanos> durations,
                                  std::span<const Nanos> arrivals) {
  for (InstructionId id = 0; id < program.size() && is_arrival(program.instructions[id]); ++id)
    durations[id] = arrivals[static_cast<std::size_t>(program.instructions[id].op.microbatch)];
  return durations;
}

}  // namespace bubblescope::inline sim
