// DeepSeek-V3, arXiv 2412.19437, section 4.2, with its one multi-token prediction module.
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

const ModelRegistrar kDeepSeek{[] {
  return ModelDef{
      .name = "deepseek-v3",
      .aliases = {"deepseek-r1", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-Base",
                  "deepseek-ai/DeepSeek-V3.1-Base", "deepseek-ai/DeepSeek-R1"},
      .summary = "256 experts, 8 per token, one shared; latent attention",
      .source = "arXiv 2412.19437, section 4.2",
      .model = {.layers = 61,
                .hidden = 7168,
                .heads = 128,
                .key_value_heads = 128,
                .head_size = 128,
                .feed_forward = 18'432,
                .gated = true,
                .vocabulary = 129'280,
                .sequence = 4096,
                .predictions = 1,
                .latent = LatentAttention{1536, 512, 64, 128},
                .experts = Experts{256, 8, 1, 2048, 3, 4}}};
}};

}  // namespace
}  // namespace bubblescope::inline sim
