// GPT-3, Brown et al., arXiv 2005.14165, table 2.1; vocabulary and learned positions as in GPT-2,
// the vocabulary padded to a multiple of 1024 as Megatron-LM does for tensor parallelism.
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

struct Size {
  const char* name;
  std::int64_t layers;
  std::int64_t hidden;
  std::int64_t heads;
};

ModelDef define(const Size& size) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = model.key_value_heads = size.heads;
  model.head_size = size.hidden / size.heads;
  model.feed_forward = 4 * size.hidden;
  model.dropout = true;
  model.vocabulary = 51'200;
  model.tied_embeddings = true;
  model.sequence = model.position_table = 2048;
  return {size.name, {}, "dense, 2,048 tokens", "arXiv 2005.14165, table 2.1", model};
}

const ModelRegistrar kSmall{[] { return define({"gpt3-125m", 12, 768, 12}); }};
const ModelRegistrar kMedium{[] { return define({"gpt3-350m", 24, 1024, 16}); }};
const ModelRegistrar kLarge{[] { return define({"gpt3-760m", 24, 1536, 16}); }};
const ModelRegistrar kXl{[] {
  return define({"gpt3-1.3b", 24, 2048, 32});
}};  // the paper's 24 heads of 128 do not
const ModelRegistrar k2{[] {
  return define({"gpt3-2.7b", 32, 2560, 32});
}};  // divide its hidden size
const ModelRegistrar k6{[] { return define({"gpt3-6.7b", 32, 4096, 32}); }};
const ModelRegistrar k13{[] { return define({"gpt3-13b", 40, 5120, 40}); }};
const ModelRegistrar k175{[] { return define({"gpt3-175b", 96, 12'288, 96}); }};

}  // namespace
}  // namespace bubblescope::inline sim
