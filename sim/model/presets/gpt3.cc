// GPT-3, Brown et al., arXiv 2005.14165, table 2.1; vocabulary and learned positions as in GPT-2.
#include "sim/model/presets/gpt_style.h"

namespace bubblescope::inline sim {
namespace {

ModelDef define(const char* name, const GptSize& size) {
  return {name, {}, "dense, 2,048 tokens", "arXiv 2005.14165, table 2.1", make_gpt(size)};
}

const ModelRegistrar kSmall{[] { return define("gpt3-125m", {12, 768, 12}); }};
const ModelRegistrar kMedium{[] { return define("gpt3-350m", {24, 1024, 16}); }};
const ModelRegistrar kLarge{[] { return define("gpt3-760m", {24, 1536, 16}); }};
// The paper's 24 heads of 128 do not add up to its hidden size.
const ModelRegistrar kXl{[] { return define("gpt3-1.3b", {24, 2048, 32}); }};
const ModelRegistrar k2{[] { return define("gpt3-2.7b", {32, 2560, 32}); }};
const ModelRegistrar k6{[] { return define("gpt3-6.7b", {32, 4096, 32}); }};
const ModelRegistrar k13{[] { return define("gpt3-13b", {40, 5120, 40}); }};
const ModelRegistrar k175{[] { return define("gpt3-175b", {96, 12'288, 96}); }};

}  // namespace
}  // namespace bubblescope::inline sim
