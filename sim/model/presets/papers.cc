// The models of papers on pipelines: GPT style, learned positions, tied embeddings.
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

struct Size {
  const char* name;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t hidden;
};

ModelDef define(const Size& size, std::int64_t sequence, const char* source) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = model.key_value_heads = size.heads;
  model.head_size = size.hidden / size.heads;
  model.feed_forward = 4 * size.hidden;
  model.dropout = true;
  model.vocabulary = 51'200;
  model.tied_embeddings = true;
  model.sequence = model.position_table = sequence;
  return {size.name, {}, "dense, of a paper", source, model};
}

// Korthikanti et al., "Reducing Activation Recomputation", arXiv 2205.05198, table 3.
constexpr const char* kMegatron = "arXiv 2205.05198, table 3";
const ModelRegistrar kMegatron22{[] {
  return define({"megatron-22b", 48, 64, 6144}, 2048, kMegatron);
}};
const ModelRegistrar kMegatron175{[] {
  return define({"megatron-175b", 96, 96, 12'288}, 2048, kMegatron);
}};
const ModelRegistrar kMegatron530{[] {
  return define({"megatron-530b", 105, 128, 20'480}, 2048, kMegatron);
}};
const ModelRegistrar kMegatron1t{[] {
  return define({"megatron-1t", 128, 160, 25'600}, 2048, kMegatron);
}};

// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, table 3.
constexpr const char* kZeroBubble = "arXiv 2401.10241, table 3";
const ModelRegistrar kZb1{[] {
  return define({"zero-bubble-1.5b", 22, 24, 2304}, 1024, kZeroBubble);
}};
const ModelRegistrar kZb6{[] {
  return define({"zero-bubble-6.2b", 30, 32, 4096}, 1024, kZeroBubble);
}};
const ModelRegistrar kZb14{[] {
  return define({"zero-bubble-14.6b", 46, 40, 5120}, 1024, kZeroBubble);
}};
const ModelRegistrar kZb28{[] {
  return define({"zero-bubble-28.3b", 62, 48, 6144}, 1024, kZeroBubble);
}};

}  // namespace
}  // namespace bubblescope::inline sim
