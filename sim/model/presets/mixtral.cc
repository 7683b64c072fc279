// Mixtral 8x7B, Jiang et al., arXiv 2401.04088, table 1; 8x22B from its published config.json.
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

struct MixtralSize {
  const char* name;
  std::int64_t layers;
  std::int64_t hidden;
  std::int64_t heads;
  std::int64_t feed_forward;
  std::int64_t vocabulary;
};

ModelDef define_mixtral(const MixtralSize& size, const char* id, const char* source) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = size.heads;
  model.feed_forward = size.feed_forward;
  model.vocabulary = size.vocabulary;
  model.key_value_heads = 8;
  model.head_size = 128;
  model.gated = true;
  model.sequence = 4096;
  model.experts = Experts{8, 2, 0, model.feed_forward, 0};
  return {size.name, {id}, "8 experts, 2 per token", source, model};
}

const ModelRegistrar kSmall{[] {
  return define_mixtral({"mixtral-8x7b", 32, 4096, 32, 14'336, 32'000},
                        "mistralai/Mixtral-8x7B-v0.1", "arXiv 2401.04088, table 1");
}};
const ModelRegistrar kLarge{[] {
  return define_mixtral({"mixtral-8x22b", 56, 6144, 48, 16'384, 32'768},
                        "mistralai/Mixtral-8x22B-v0.3",
                        "config.json of mistralai/Mixtral-8x22B-v0.3");
}};

}  // namespace
}  // namespace bubblescope::inline sim
