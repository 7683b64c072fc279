// Writes and reads the state of a stage.
#include "exec/training/stage_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "exec/training/matrix_blob.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

using Sizes = std::vector<StageCheckpointShape::Size>;

bool is_zero(const std::vector<Matrix>& matrices) {
  return std::all_of(matrices.begin(), matrices.end(), [](const Matrix& matrix) {
    return std::all_of(matrix.values.begin(), matrix.values.end(),
                       [](float value) { return std::bit_cast<std::uint32_t>(value) == 0; });
  });
}

void write_unless_zero(BlobWriter& writer, const std::vector<Matrix>& matrices) {
  write_matrices(writer, is_zero(matrices) ? std::vector<Matrix>() : matrices);
}

/// Reads matrices of these sizes, or none.
std::vector<Matrix> read_if_any(const Sizes& sizes, BlobReader& reader) {
  std::vector<Matrix> matrices = read_matrices(reader);
  if (matrices.empty()) return matrices;
  const bool fits = std::equal(sizes.begin(), sizes.end(), matrices.begin(), matrices.end(),
                               [](const StageCheckpointShape::Size& size, const Matrix& matrix) {
                                 return size.rows == matrix.rows && size.columns == matrix.columns;
                               });
  if (!fits) throw Error("a checkpoint has matrices of other sizes than the model");
  return matrices;
}

/// The same; none stand for zeros.
std::vector<Matrix> read_like(const Sizes& sizes, BlobReader& reader) {
  std::vector<Matrix> matrices = read_if_any(sizes, reader);
  if (matrices.empty())
    for (const StageCheckpointShape::Size& size : sizes)
      matrices.emplace_back(size.rows, size.columns);
  return matrices;
}

/// Reads the moments of the optimizer, which update() indexes without a further check.
OptimizerState read_optimizer(const StageCheckpointShape& shape, BlobReader& reader) {
  OptimizerState optimizer;
  optimizer.steps = reader.read<std::int32_t>();
  optimizer.mean = read_if_any(shape.weights, reader);
  optimizer.square = read_if_any(shape.weights, reader);
  if (optimizer.steps < 0 || optimizer.steps > shape.max_updates)
    throw Error("a checkpoint has " + counted(optimizer.steps, "optimizer step") +
                ", which its training cannot have made");
  if (optimizer.mean.empty() != optimizer.square.empty())
    throw Error("a checkpoint has one of Adam's moments without the other");
  return optimizer;
}

}  // namespace

bool keeps_last_gradients(const Schedule& schedule) {
  return schedule.forward_only || !schedule.weights.empty();
}

void write_stage(BlobWriter& writer, const StageCheckpointView& stage, bool keeps_last_gradients) {
  write_matrices(writer, stage.weights);
  writer.write(stage.optimizer.steps);
  write_matrices(writer, stage.optimizer.mean);
  write_matrices(writer, stage.optimizer.square);
  write_unless_zero(writer, stage.gradients);
  if (keeps_last_gradients) write_unless_zero(writer, stage.last_gradients);
}

StageCheckpoint read_stage(BlobReader& reader, const StageCheckpointShape& shape) {
  StageCheckpoint stage;
  stage.weights = read_like(shape.weights, reader);
  stage.optimizer = read_optimizer(shape, reader);
  stage.gradients = read_like(shape.weights, reader);
  if (shape.keeps_last_gradients) stage.last_gradients = read_like(shape.weights, reader);
  return stage;
}

}  // namespace bubblescope::exec
