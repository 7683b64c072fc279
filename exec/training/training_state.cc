// The state of a training between two steps. Data needs none, because the data of a step depends on
// the seed and the step alone. Neither do weight versions: a step ends with the newest one only.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "exec/training/matrix_blob.h"
#include "exec/training/trained_stages.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

bool is_zero(const std::vector<Matrix>& matrices) {
  return std::all_of(matrices.begin(), matrices.end(), [](const Matrix& matrix) {
    return std::all_of(matrix.values.begin(), matrix.values.end(),
                       [](float value) { return std::bit_cast<std::uint32_t>(value) == 0; });
  });
}

/// Nothing is written for zeros, such as the gradients of a synchronous schedule between steps.
void write_unless_zero(BlobWriter& writer, const std::vector<Matrix>& matrices) {
  write_matrices(writer, is_zero(matrices) ? std::vector<Matrix>() : matrices);
}

/// Reads matrices of the weights' shapes, or none.
std::vector<Matrix> read_if_any(const std::vector<Matrix>& weights, BlobReader& reader) {
  std::vector<Matrix> matrices = read_matrices(reader);
  if (matrices.empty()) return matrices;
  const bool fits = std::equal(weights.begin(), weights.end(), matrices.begin(), matrices.end(),
                               [](const Matrix& left, const Matrix& right) {
                                 return left.rows == right.rows && left.columns == right.columns;
                               });
  if (!fits) throw Error("a checkpoint has matrices of other sizes than the model");
  return matrices;
}

/// The same; none stand for zeros.
std::vector<Matrix> read_like(const std::vector<Matrix>& weights, BlobReader& reader) {
  std::vector<Matrix> matrices = read_if_any(weights, reader);
  return matrices.empty() ? zeros_like(weights) : matrices;
}

/// Reads the moments of the optimizer, which update() indexes without a further check.
OptimizerState read_optimizer(const std::vector<Matrix>& weights, std::int64_t max_steps,
                              BlobReader& reader) {
  OptimizerState optimizer;
  optimizer.steps = reader.read<std::int32_t>();
  optimizer.mean = read_if_any(weights, reader);
  optimizer.square = read_if_any(weights, reader);
  if (optimizer.steps < 0 || optimizer.steps > max_steps)
    throw Error("a checkpoint has " + std::to_string(optimizer.steps) +
                " optimizer steps, which its training cannot have made");
  if (optimizer.mean.empty() != optimizer.square.empty())
    throw Error("a checkpoint has one of Adam's moments without the other");
  return optimizer;
}

}  // namespace

/// In synchronous schedules every step replaces the gradients of the last update.
bool TrainedStages::keeps_last_gradients() const {
  return schedule_.forward_only || !schedule_.weights.empty();
}

Blob TrainedStages::save() const {
  BlobWriter writer;
  writer.write_all(losses_);
  for (const StageState& state : stages_) {
    writer.write(static_cast<std::uint8_t>(state.is_here()));
    if (!state.is_here()) continue;
    const OptimizerState& optimizer = state.weights.optimizer();
    write_matrices(writer, state.weights.newest().weights);
    writer.write(optimizer.steps);
    write_matrices(writer, optimizer.mean);
    write_matrices(writer, optimizer.square);
    write_unless_zero(writer, state.gradients);
    if (keeps_last_gradients()) write_unless_zero(writer, state.last_gradients);
  }
  return writer.take();
}

void TrainedStages::restore(std::span<const std::byte> bytes) {
  BlobReader reader(bytes);
  losses_ = reader.read_all<double>();
  // Every micro-batch updates the weights at most once.
  const std::int64_t max_steps = std::int64_t{schedule_.shape.microbatches} * std::ssize(losses_);
  for (StageState& state : stages_) {
    if ((reader.read<std::uint8_t>() != 0) != state.is_here())
      throw Error("a checkpoint has stages of another process");
    if (!state.is_here()) continue;
    std::vector<Matrix> weights = read_like(state.gradients, reader);
    state.weights.restore(std::move(weights), read_optimizer(state.gradients, max_steps, reader));
    state.gradients = read_like(state.gradients, reader);
    if (keeps_last_gradients()) state.last_gradients = read_like(state.gradients, reader);
  }
  if (!reader.rest().empty()) throw Error("a checkpoint has more bytes than its training needs");
}

}  // namespace bubblescope::exec
