// Generates initial weights.
#include "exec/training/stage.h"

#include <cmath>
#include <random>
#include <utility>

namespace bubblescope::exec {

namespace {

/// Draws from a normal distribution by sums of uniform numbers, because std::normal_distribution
/// differs between systems.
float draw(std::mt19937_64& random) {
  double sum = 0;
  for (int at = 0; at < 12; ++at) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return static_cast<float>(sum - 6);
}

/// The variance is such that a product over `columns` entries keeps its scale.
Matrix make_weight(const WeightOutline& outline, std::mt19937_64& random) {
  Matrix weight(outline.rows, outline.columns);
  const float scale = 1 / std::sqrt(static_cast<float>(outline.rows));
  for (float& value : weight.values) value = outline.is_gain ? 1 : scale * draw(random);
  return weight;
}

}  // namespace

std::vector<WeightOutline> outline_weights(const TransformerShape& shape, bool first, bool last) {
  const std::int32_t width = shape.width;
  std::vector<WeightOutline> weights;
  if (first) {
    weights.push_back({"embedding", shape.vocabulary, width});
    weights.push_back({"position", shape.sequence, width});
  }
  for (std::int32_t block = 0; block < shape.blocks_per_stage; ++block) {
    const std::string prefix = "block" + std::to_string(block) + ".";
    weights.push_back({prefix + "attention_gain", 1, width, true});
    weights.push_back({prefix + "qkv", width, 3 * width});
    weights.push_back({prefix + "out", width, width});
    weights.push_back({prefix + "mlp_gain", 1, width, true});
    weights.push_back({prefix + "up", width, shape.inner()});
    weights.push_back({prefix + "down", shape.inner(), width});
  }
  if (!last) return weights;
  weights.push_back({"head_gain", 1, width, true});
  weights.push_back({"head", width, shape.vocabulary});
  return weights;
}

Stage make_stage(const StagePlan& plan) {
  std::mt19937_64 random(plan.seed * 1'000'003 + static_cast<std::uint64_t>(plan.stage));
  Stage stage;
  stage.shape = plan.shape;
  stage.first = plan.stage == 0;
  stage.last = plan.stage + 1 == plan.stages;
  for (const WeightOutline& outline : outline_weights(plan.shape, stage.first, stage.last)) {
    stage.names.push_back(outline.name);
    stage.weights.push_back(make_weight(outline, random));
  }
  return stage;
}

Stage as_read(const Stage& masters) {
  Stage stage = masters;
  for (Matrix& weight : stage.weights) weight = stored(std::move(weight), stage.shape.precision);
  return stage;
}

std::vector<Matrix> zeros_like(const std::vector<Matrix>& weights) {
  std::vector<Matrix> zeros;
  for (const Matrix& weight : weights) zeros.emplace_back(weight.rows, weight.columns);
  return zeros;
}

}  // namespace bubblescope::exec
