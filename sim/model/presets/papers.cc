// The models of papers on pipelines: GPT style, learned positions, tied embeddings.
#include "sim/model/presets/gpt_style.h"

namespace bubblescope::inline sim {
namespace {

ModelDef define(const char* name, const GptSize& size, const char* source) {
  return {name, {}, "dense, of a paper", source, make_gpt(size)};
}

// Korthikanti et al., "Reducing Activation Recomputation", arXiv 2205.05198, table 3.
constexpr const char* kMegatron = "arXiv 2205.05198, table 3";
const ModelRegistrar kMegatron22{[] {
  return define("megatron-22b", {48, 6144, 64, 2048}, kMegatron);
}};
const ModelRegistrar kMegatron175{[] {
  return define("megatron-175b", {96, 12'288, 96, 2048}, kMegatron);
}};
const ModelRegistrar kMegatron530{[] {
  return define("megatron-530b", {105, 20'480, 128, 2048}, kMegatron);
}};
const ModelRegistrar kMegatron1t{[] {
  return define("megatron-1t", {128, 25'600, 160, 2048}, kMegatron);
}};

// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, table 3.
constexpr const char* kZeroBubble = "arXiv 2401.10241, table 3";
const ModelRegistrar kZb1{[] {
  return define("zero-bubble-1.5b", {22, 2304, 24, 1024}, kZeroBubble);
}};
const ModelRegistrar kZb6{[] {
  return define("zero-bubble-6.2b", {30, 4096, 32, 1024}, kZeroBubble);
}};
const ModelRegistrar kZb14{[] {
  return define("zero-bubble-14.6b", {46, 5120, 40, 1024}, kZeroBubble);
}};
const ModelRegistrar kZb28{[] {
  return define("zero-bubble-28.3b", {62, 6144, 48, 1024}, kZeroBubble);
}};

}  // namespace
}  // namespace bubblescope::inline sim
