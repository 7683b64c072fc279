// The weights of one stage of a transformer, and their initial values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/precision.h"

namespace bubblescope::exec {

struct TransformerShape {
  std::int32_t blocks_per_stage = 1;
  std::int32_t width = 32;
  std::int32_t heads = 2;  ///< must divide the width
  std::int32_t vocabulary = 61;
  std::int32_t sequence = 16;
  std::int32_t batch = 1;                     ///< sequences per micro-batch
  Precision precision = Precision::kFloat32;  ///< of activations, gradients, weights to read

  std::int32_t rows() const { return batch * sequence; }
  std::int32_t inner() const { return 4 * width; }  ///< width of the MLP's hidden layer
};

/// Adjacent columns of the head, for adjacent words of the vocabulary.
struct HeadColumns {
  std::int32_t begin = 0;
  std::int32_t count = 0;
};

/// The parts of a stage beside its blocks.
struct StageForm {
  bool first = false;       ///< begins with the embedding
  bool last = false;        ///< ends with the head and the loss
  std::int32_t inputs = 1;  ///< stages that it reads: several are added up, each with a gain
  std::int32_t ahead = 1;   ///< the last stage predicts this many tokens ahead
  bool has_head = true;     ///< else the last stage ends with the norm before the head
  /// The stage has these columns of the head and nothing else: it is a shard (vocabulary_shard.h).
  std::optional<HeadColumns> shard = {};
};

/// The weights of a stage: named matrices in a fixed order.
struct Stage : StageForm {
  TransformerShape shape;
  std::vector<std::string> names;
  std::vector<Matrix> weights;
};

/// The parameters that determine a stage's initial weights.
struct StagePlan {
  TransformerShape shape;
  std::int32_t stage = 0;
  std::int32_t stages = 1;
  std::uint64_t seed = 1;
  std::optional<StageForm> special = {};  ///< else the form that the stage has in a chain

  StageForm form() const { return special.value_or(StageForm{stage == 0, stage + 1 == stages}); }
};

/// The name and shape of a weight.
struct WeightOutline {
  std::string name;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  bool is_gain = false;
};

/// Returns all weights of a stage, in their order.
std::vector<WeightOutline> outline_weights(const TransformerShape& shape, const StageForm& form);
std::vector<WeightOutline> outline_weights(const StagePlan& plan);

/// How the entries of a weight are drawn: entry `at` is scale * draw_entry(key, at). The variance
/// is such that a product over `rows` entries keeps its scale. Gains are not drawn but 1.
struct WeightDraw {
  std::uint64_t key = 0;
  float scale = 1;
};

/// Returns the draw of the stage's weight with this index.
WeightDraw draw_of(const StagePlan& plan, std::size_t weight, const WeightOutline& outline);

/// The same plan gives the same weights, bit for bit. Draws large matrices with several threads.
Stage make_stage(const StagePlan& plan);

/// The stage with its weights rounded as GEMMs read them.
Stage as_read(const Stage& masters);

/// Returns zero matrices in the shape of the weights.
std::vector<Matrix> zeros_like(const std::vector<Matrix>& weights);

// The order of a stage's weights: the embedding on the first stage, all blocks, the head on the
// last stage, the gains of several inputs. A shard has its part of the head alone.
namespace weight_order {
enum FirstWeight : std::size_t { kEmbedding, kPosition, kFirstWeights };
enum BlockWeight : std::size_t { kGain, kQkv, kOut, kMiddleGain, kUp, kDown, kBlockWeights };
enum LastWeight : std::size_t { kHeadGain, kHead };
}  // namespace weight_order

/// The index of a block's first weight. A stage is a Stage, or one on a GPU.
template <class AnyStage>
std::size_t block_begin(const AnyStage& stage, std::size_t block) {
  using namespace weight_order;
  return (stage.first ? std::size_t{kFirstWeights} : 0) + block * kBlockWeights;
}

/// Returns the index of the first weight of the last stage's head.
template <class AnyStage>
std::size_t head_begin(const AnyStage& stage) {
  return block_begin(stage, static_cast<std::size_t>(stage.shape.blocks_per_stage));
}

/// Returns the index of the first gain of a stage with several inputs.
inline std::size_t join_begin(const Stage& stage) {
  return stage.weights.size() - static_cast<std::size_t>(stage.inputs);
}

}  // namespace bubblescope::exec
