// Distributes random instructions over lanes.
#include "tests/support/random_program.h"

#include <variant>

#include "sim/ir/program_draft.h"

namespace bubblescope::tests {

Program random_program(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int ranks = pick(1, 5);
  const int count = pick(1, 60);
  ProgramDraft draft(ranks, static_cast<std::size_t>(count));
  const std::uint32_t link = draft.add_lane({0, "link"});
  for (int id = 0; id < count; ++id) {
    const std::int32_t rank = pick(0, ranks - 1);
    const int where = pick(0, 9);
    const std::uint32_t lane = where < 3    ? kNoLane
                               : where == 3 ? link
                                            : static_cast<std::uint32_t>(rank);
    Op op = forward(0, id);
    if (lane == kNoLane && ranks > 1) op.kind = OpKind::kSendForward;
    const std::int32_t peer = is_send(op.kind) ? (rank + pick(1, ranks - 1)) % ranks : rank;
    draft.add({op, lane, rank, peer});
    for (int edge = pick(0, 3); id > 0 && edge > 0; --edge)
      draft.wait_for(static_cast<InstructionId>(pick(0, id - 1)));
  }
  return std::get<Program>(std::move(draft).finish());
}

std::vector<Nanos> random_durations(const Program& program, std::mt19937& random) {
  std::vector<Nanos> durations;
  for (InstructionId id = 0; id < program.size(); ++id)
    durations.push_back(1 + static_cast<Nanos>(random() % 50));
  return durations;
}

}  // namespace bubblescope::tests
