// Open models by their config.json on Hugging Face, whose id is an alias. The numbers of parameters
// that their authors state are a test.
#include <string>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {
namespace {

struct Size {
  const char* name;
  std::vector<std::string> ids;
  std::int64_t layers;
  std::int64_t hidden;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t head_size;
  std::int64_t feed_forward;
  std::int64_t vocabulary;
};

ModelDef define(const Size& size, const char* summary, bool gated = true) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = size.heads;
  model.key_value_heads = size.key_value_heads;
  model.head_size = size.head_size;
  model.feed_forward = size.feed_forward;
  model.gated = gated;
  model.vocabulary = size.vocabulary;
  model.sequence = 4096;
  return {size.name, size.ids, summary, "config.json of " + size.ids.front(), model};
}

ModelDef dense(const Size& size) { return define(size, "dense, SwiGLU, grouped queries"); }

ModelDef tied(const Size& size) {
  ModelDef def = define(size, "dense, SwiGLU, grouped queries, tied embeddings");
  def.model.tied_embeddings = true;
  return def;
}

/// Every sixth layer attends to the whole sequence (sliding_window_pattern).
ModelDef gemma(const Size& size, std::int64_t window) {
  ModelDef def = define(size, "dense, GeGLU, tied embeddings; five of six layers local");
  def.model.query_key_norms = true;
  def.model.tied_embeddings = true;
  def.model.window = window;
  def.model.local_layers = size.layers - size.layers / 6;
  return def;
}

ModelDef mixture(const Size& size, const Experts& experts) {
  ModelDef def = define(size, "");
  def.model.experts = experts;
  def.summary = counted(experts.count, "expert") + ", " + std::to_string(experts.per_token) +
                " per token" + (experts.shared > 0 ? ", and shared ones" : "");
  return def;
}

ModelDef latent(const Size& size, const LatentAttention& attention, const Experts& experts) {
  ModelDef def = mixture(size, experts);
  def.summary += "; latent attention";
  def.model.latent = attention;
  return def;
}

const ModelRegistrar kLlama32{[] {
  return std::vector{
      tied({"llama3.2-1b", {"meta-llama/Llama-3.2-1B"}, 16, 2048, 32, 8, 64, 8192, 128'256}),
      tied({"llama3.2-3b", {"meta-llama/Llama-3.2-3B"}, 28, 3072, 24, 8, 128, 8192, 128'256})};
}};
// Every second layer of Maverick has a dense network.
const ModelRegistrar kLlama4{[] {
  return std::vector{
      mixture({"llama4-scout",
               {"meta-llama/Llama-4-Scout-17B-16E"},
               48,
               5120,
               40,
               8,
               128,
               16'384,
               202'048},
              {16, 1, 1, 8192, 0}),
      mixture({"llama4-maverick",
               {"meta-llama/Llama-4-Maverick-17B-128E"},
               48,
               5120,
               40,
               8,
               128,
               16'384,
               202'048},
              {.count = 128, .per_token = 1, .shared = 1, .feed_forward = 8192, .every = 2})};
}};

// The one shared expert is as wide as eight of the others (shared_expert_intermediate_size 20,480).
const ModelRegistrar kQwen2{[] {
  return mixture({"qwen2-57b-a14b", {"Qwen/Qwen2-57B-A14B"}, 28, 3584, 28, 4, 128, 18'944, 151'936},
                 {64, 8, 8, 2560, 0});
}};

const ModelRegistrar kQwen25{[] {
  return std::vector{
      tied({"qwen2.5-0.5b", {"Qwen/Qwen2.5-0.5B"}, 24, 896, 14, 2, 64, 4864, 151'936}),
      tied({"qwen2.5-1.5b", {"Qwen/Qwen2.5-1.5B"}, 28, 1536, 12, 2, 128, 8960, 151'936}),
      tied({"qwen2.5-3b", {"Qwen/Qwen2.5-3B"}, 36, 2048, 16, 2, 128, 11'008, 151'936}),
      dense({"qwen2.5-7b", {"Qwen/Qwen2.5-7B"}, 28, 3584, 28, 4, 128, 18'944, 152'064}),
      dense({"qwen2.5-14b", {"Qwen/Qwen2.5-14B"}, 48, 5120, 40, 8, 128, 13'824, 152'064}),
      dense({"qwen2.5-32b", {"Qwen/Qwen2.5-32B"}, 64, 5120, 40, 8, 128, 27'648, 152'064}),
      dense({"qwen2.5-72b", {"Qwen/Qwen2.5-72B"}, 80, 8192, 64, 8, 128, 29'568, 152'064})};
}};
const ModelRegistrar kQwen3{[] {
  std::vector<ModelDef> defs{
      tied({"qwen3-0.6b", {"Qwen/Qwen3-0.6B"}, 28, 1024, 16, 8, 128, 3072, 151'936}),
      tied({"qwen3-1.7b", {"Qwen/Qwen3-1.7B"}, 28, 2048, 16, 8, 128, 6144, 151'936}),
      tied({"qwen3-4b", {"Qwen/Qwen3-4B"}, 36, 2560, 32, 8, 128, 9728, 151'936}),
      dense({"qwen3-8b", {"Qwen/Qwen3-8B"}, 36, 4096, 32, 8, 128, 12'288, 151'936}),
      dense({"qwen3-14b", {"Qwen/Qwen3-14B"}, 40, 5120, 40, 8, 128, 17'408, 151'936}),
      dense({"qwen3-32b", {"Qwen/Qwen3-32B"}, 64, 5120, 64, 8, 128, 25'600, 151'936}),
      mixture({"qwen3-30b-a3b", {"Qwen/Qwen3-30B-A3B"}, 48, 2048, 32, 4, 128, 6144, 151'936},
              {128, 8, 0, 768, 0}),
      mixture({"qwen3-235b-a22b", {"Qwen/Qwen3-235B-A22B"}, 94, 4096, 64, 4, 128, 12'288, 151'936},
              {128, 8, 0, 1536, 0})};
  for (ModelDef& def : defs) def.model.query_key_norms = true;
  return defs;
}};

const ModelRegistrar kMistral{[] {
  return std::vector{
      dense({"mistral-7b", {"mistralai/Mistral-7B-v0.3"}, 32, 4096, 32, 8, 128, 14'336, 32'768}),
      dense({"mistral-nemo-12b",
             {"mistralai/Mistral-Nemo-Base-2407"},
             40,
             5120,
             32,
             8,
             128,
             14'336,
             131'072}),
      dense({"mistral-small-24b",
             {"mistralai/Mistral-Small-24B-Base-2501"},
             40,
             5120,
             32,
             8,
             128,
             32'768,
             131'072}),
      dense({"mistral-large-123b",
             {"mistralai/Mistral-Large-Instruct-2407"},
             88,
             12'288,
             96,
             8,
             128,
             28'672,
             32'768})};
}};

const ModelRegistrar kGemma3{[] {
  return std::vector{
      gemma({"gemma3-1b", {"google/gemma-3-1b-pt"}, 26, 1152, 4, 1, 256, 6912, 262'144}, 512),
      gemma({"gemma3-4b", {"google/gemma-3-4b-pt"}, 34, 2560, 8, 4, 256, 10'240, 262'208}, 1024),
      gemma({"gemma3-12b", {"google/gemma-3-12b-pt"}, 48, 3840, 16, 8, 256, 15'360, 262'208}, 1024),
      gemma({"gemma3-27b", {"google/gemma-3-27b-pt"}, 62, 5376, 32, 16, 128, 21'504, 262'208},
            1024)};
}};

/// Every second layer attends to 128 tokens (sliding_window, layer_types).
ModelDef gpt_oss(const Size& size, std::int64_t experts) {
  ModelDef def = mixture(size, {experts, 4, 0, 2880});
  def.summary += "; every second layer local";
  def.model.window = 128;
  def.model.local_layers = size.layers / 2;
  def.model.experts->biased = true;
  return def;
}

const ModelRegistrar kGptOss{[] {
  return std::vector{
      gpt_oss({"gpt-oss-20b", {"openai/gpt-oss-20b"}, 24, 2880, 64, 8, 64, 2880, 201'088}, 32),
      gpt_oss({"gpt-oss-120b", {"openai/gpt-oss-120b"}, 36, 2880, 64, 8, 64, 2880, 201'088}, 128)};
}};

const ModelRegistrar kDeepSeekKin{[] {
  return std::vector{
      latent({"deepseek-v2", {"deepseek-ai/DeepSeek-V2"}, 60, 5120, 128, 128, 128, 12'288, 102'400},
             {1536, 512, 64, 128}, {160, 6, 2, 1536, 1, 3}),
      latent({"deepseek-v2-lite",
              {"deepseek-ai/DeepSeek-V2-Lite"},
              27,
              2048,
              16,
              16,
              128,
              10'944,
              102'400},
             {0, 512, 64, 128}, {64, 6, 2, 1408, 1}),
      latent({"kimi-k2",
              {"moonshotai/Kimi-K2-Base", "moonshotai/Kimi-K2-Instruct"},
              61,
              7168,
              64,
              64,
              128,
              18'432,
              163'840},
             {1536, 512, 64, 128}, {384, 8, 1, 2048, 1})};
}};

ModelDef squared(const Size& size) {
  return define(size, "dense, squared ReLU, grouped queries", false);
}

const ModelRegistrar kNemotron{[] {
  return std::vector{
      squared({"nemotron4-15b", {"nvidia/Nemotron-4-15B"}, 32, 6144, 48, 8, 128, 24'576, 256'000}),
      squared({"nemotron4-340b",
               {"nvidia/Nemotron-4-340B-Base"},
               96,
               18'432,
               96,
               8,
               192,
               73'728,
               256'000})};
}};
const ModelRegistrar kGrok{[] {
  return mixture({"grok1-314b", {"xai-org/grok-1"}, 64, 6144, 48, 8, 128, 32'768, 131'072},
                 {8, 2, 0, 32'768, 0});
}};

}  // namespace
}  // namespace bubblescope::inline sim
