// Initial weights.
#include "exec/training/stage.h"

#include <cmath>
#include <random>
#include <utility>

namespace bubblescope {

namespace {

/// Normally distributed by sums of uniform numbers: the same on every system, as
/// std::normal_distribution is not.
float draw(std::mt19937_64& random) {
  double sum = 0;
  for (int at = 0; at < 12; ++at) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return static_cast<float>(sum - 6);
}

/// Adds weights to a stage that is being made.
class StageMaker {
 public:
  explicit StageMaker(const StagePlan& plan)
      : random_(plan.seed * 1'000'003 + static_cast<std::uint64_t>(plan.stage)) {
    stage_.shape = plan.shape;
    stage_.first = plan.stage == 0;
    stage_.last = plan.stage + 1 == plan.stages;
  }

  /// Entries vary so that a product of `columns` of them keeps its size.
  void add_matrix(const std::string& name, std::int32_t rows, std::int32_t columns) {
    Matrix weight(rows, columns);
    const float scale = 1 / std::sqrt(static_cast<float>(rows));
    for (float& value : weight.values) value = scale * draw(random_);
    add(name, std::move(weight));
  }

  void add_gain(const std::string& name) {
    Matrix gain(1, stage_.shape.width);
    for (float& value : gain.values) value = 1;
    add(name, std::move(gain));
  }

  Stage take() { return std::move(stage_); }

 private:
  void add(const std::string& name, Matrix weight) {
    stage_.names.push_back(name);
    stage_.weights.push_back(std::move(weight));
  }

  std::mt19937_64 random_;
  Stage stage_;
};

}  // namespace

Stage make_stage(const StagePlan& plan) {
  const TransformerShape& shape = plan.shape;
  StageMaker maker(plan);
  if (plan.stage == 0) {
    maker.add_matrix("embedding", shape.vocabulary, shape.width);
    maker.add_matrix("position", shape.sequence, shape.width);
  }
  for (std::int32_t block = 0; block < shape.blocks_per_stage; ++block) {
    const std::string prefix = "block" + std::to_string(block) + ".";
    maker.add_gain(prefix + "attention_gain");
    maker.add_matrix(prefix + "qkv", shape.width, 3 * shape.width);
    maker.add_matrix(prefix + "out", shape.width, shape.width);
    maker.add_gain(prefix + "mlp_gain");
    maker.add_matrix(prefix + "up", shape.width, shape.inner());
    maker.add_matrix(prefix + "down", shape.inner(), shape.width);
  }
  if (plan.stage + 1 == plan.stages) {
    maker.add_gain("head_gain");
    maker.add_matrix("head", shape.width, shape.vocabulary);
  }
  return maker.take();
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

std::size_t block_begin(const Stage& stage, std::size_t block) {
  using namespace weight_order;
  return (stage.first ? std::size_t{kFirstWeights} : 0) + block * kBlockWeights;
}

std::size_t head_begin(const Stage& stage) {
  return block_begin(stage, static_cast<std::size_t>(stage.shape.blocks_per_stage));
}

}  // namespace bubblescope
