// Digests a Program field by field: an Instruction has bytes between its fields.
#include "sim/ir/program_digest.h"

#include <array>

#include "sim/ir/digest.h"

namespace bubblescope::inline sim {

std::uint64_t digest_program(const Program& program) {
  std::uint64_t all = digest_values(std::array{program.ranks});
  for (const Lane& lane : program.lanes)
    all = digest_values(std::array{lane.rank}, digest(lane.name, all));
  for (const auto& [op, lane, rank, peer, role] : program.instructions) {
    all = digest_values(std::array{op}, all);
    all = digest_values(std::array{rank, peer}, all);
    all = digest_values(std::array{lane, static_cast<std::uint32_t>(role)}, all);
  }
  return digest_values(program.dependencies, digest_values(program.dependency_begin, all));
}

}  // namespace bubblescope::inline sim
