// Generates initial weights.
#include "exec/training/stage.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "exec/training/draw_entry.h"

namespace bubblescope::exec {

namespace {

/// Below this, starting threads takes longer than drawing.
constexpr std::size_t kEntriesPerThread = std::size_t{1} << 18;

void fill(float* values, const WeightDraw& draw, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; ++at) values[at] = draw.scale * draw_entry(draw.key, at);
}

Matrix make_weight(const WeightOutline& outline, const WeightDraw& draw) {
  Matrix weight(outline.rows, outline.columns);
  float* const values = weight.values.data();
  const std::size_t count = weight.values.size();
  if (outline.is_gain) {
    std::fill_n(values, count, 1.0F);
    return weight;
  }
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(count / kEntriesPerThread, 1, cores);
  std::vector<std::jthread> threads;
  for (std::size_t part = 1; part < parts; ++part)
    threads.emplace_back(fill, values, draw, count * part / parts, count * (part + 1) / parts);
  fill(values, draw, 0, count / parts);
  return weight;
}

/// The shard's columns of the head that the whole last stage would have.
Matrix make_shard(const StagePlan& plan, const HeadColumns& columns) {
  StagePlan whole_stage = plan;
  whole_stage.special.reset();
  const std::vector<WeightOutline> outlines = outline_weights(whole_stage);
  const std::size_t head = outlines.size() - 1;
  const Matrix all = make_weight(outlines[head], draw_of(plan, head, outlines[head]));
  Matrix shard(all.rows, columns.count);
  for (std::int32_t row = 0; row < all.rows; ++row)
    std::copy_n(all.row(row) + columns.begin, columns.count, shard.row(row));
  return shard;
}

}  // namespace

std::vector<WeightOutline> outline_weights(const TransformerShape& shape, const StageForm& form) {
  const std::int32_t width = shape.width;
  if (form.shard) return {{"head", width, form.shard->count}};
  std::vector<WeightOutline> weights;
  if (form.first) {
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
  if (form.last) weights.push_back({"head_gain", 1, width, true});
  if (form.last && form.has_head) weights.push_back({"head", width, shape.vocabulary});
  for (std::int32_t input = 0; form.inputs > 1 && input < form.inputs; ++input)
    weights.push_back({"input" + std::to_string(input) + "_gain", 1, width, true});
  return weights;
}

WeightDraw draw_of(const StagePlan& plan, std::size_t weight, const WeightOutline& outline) {
  const std::uint64_t stage = plan.seed * 1'000'003 + static_cast<std::uint64_t>(plan.stage);
  return {scramble(scramble(stage) + weight), 1 / std::sqrt(static_cast<float>(outline.rows))};
}

std::vector<WeightOutline> outline_weights(const StagePlan& plan) {
  return outline_weights(plan.shape, plan.form());
}

Stage make_stage(const StagePlan& plan) {
  Stage stage{plan.form(), plan.shape, {}, {}};
  if (stage.shard) {
    stage.names = {"head"};
    stage.weights.push_back(make_shard(plan, *stage.shard));
    return stage;
  }
  for (const WeightOutline& outline : outline_weights(plan)) {
    const WeightDraw draw = draw_of(plan, stage.weights.size(), outline);
    stage.names.push_back(outline.name);
    stage.weights.push_back(make_weight(outline, draw));
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
