// Computes the maximum payload of a gather from the Program and the model.
#include "exec/nccl/gather_limit.h"

#include <algorithm>

#include "exec/nccl/socket_transport.h"

namespace bubblescope::exec {

namespace {

/// The bytes before a matrix's entries: rows, columns and the number of entries.
constexpr std::uint64_t kMatrixHeader = 2 * sizeof(std::int32_t) + sizeof(std::size_t);

/// Counts a span, an arrival and a BlockedAt for every instruction.
std::uint64_t bytes_of_step(const Program& program) {
  return program.instructions.size() * (2 * sizeof(Span) + sizeof(BlockedAt));
}

std::uint64_t bytes_of_weights(const TransformerShape& shape, bool first, bool last) {
  std::uint64_t bytes = 0;
  for (const WeightOutline& weight : outline_weights(shape, {first, last}))
    bytes += kMatrixHeader + static_cast<std::uint64_t>(weight.rows) *
                                 static_cast<std::uint64_t>(weight.columns) * sizeof(float);
  return bytes;
}

/// Counts the weights and gradients of the whole model, and for every stage the numbers of both.
std::uint64_t bytes_of_model(const Schedule& schedule, const TrainingOptions& options) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  std::uint64_t bytes = 0;
  for (std::int32_t stage = 0; stage < stages; ++stage)
    bytes += 2 * (sizeof(std::size_t) +
                  bytes_of_weights(options.model, stage == 0, stage + 1 == stages));
  return bytes;
}

}  // namespace

/// Adds kSmallGather for content whose size does not depend on the Program, such as the text of a
/// failure.
std::uint64_t max_gather_bytes(const JobRequest& job) {
  const Schedule& schedule = job.schedule;
  const std::uint64_t trained =
      job.training == nullptr ? 0 : bytes_of_model(schedule, *job.training);
  return kSmallGather + std::max(bytes_of_step(job.program), trained);
}

}  // namespace bubblescope::exec
