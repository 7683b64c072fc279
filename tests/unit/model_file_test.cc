// The config.json of well-known models: their keys as published, their parameters as counted.
#include "traces/costs/model_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"

namespace bubblescope::tests {
namespace {

struct Known {
  std::string config;
  double parameters = 0;  ///< in the published checkpoint, or as stated in its paper
};

double parameters_of(const std::string& config) {
  return static_cast<double>(
      count_total_parameters(traces::parse_model(config, "config.json").model));
}

void expect_known(const std::vector<Known>& models) {
  for (const Known& known : models)
    EXPECT_NEAR(parameters_of(known.config) / known.parameters, 1, 0.01) << known.config;
}

std::string complaint(const std::string& config) {
  try {
    traces::parse_model(config, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(ModelFiles, OfOurOtherKindsAreNamed) {
  EXPECT_EQ(complaint(R"({"format": "bubblescope-costs/1", "forward": 1})"),
            "config.json: /format: is 'bubblescope-costs/1', but a model's config.json is needed "
            "here");
}

// Counts are the numbers of elements in the checkpoints' files unless a paper is named; a table
// that is used twice is counted once.
TEST(ModelFiles, CountTheParametersOfLlamasAndTheirLike) {
  expect_known({
      {R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
           "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000,
           "max_position_embeddings": 4096})",
       6'738'415'616},  // Llama-2-7b
      {R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
           "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
           "vocab_size": 32000, "max_position_embeddings": 32768})",
       7'241'732'096},  // Mistral-7B-v0.1
      {R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
           "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28,
           "vocab_size": 152064, "max_position_embeddings": 131072, "use_sliding_window": false})",
       7'615'616'512},  // Qwen2-7B
      {R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
           "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 24,
           "vocab_size": 151936, "max_position_embeddings": 131072, "tie_word_embeddings": true})",
       494'032'768},  // Qwen2-0.5B
      {R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "head_dim": 128,
           "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 36,
           "vocab_size": 151936, "max_position_embeddings": 40960})",
       8'190'735'360},  // Qwen3-8B
      {R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
           "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 32,
           "vocab_size": 32064, "max_position_embeddings": 4096, "resid_pdrop": 0.0})",
       3'821'079'552},  // Phi-3-mini-4k
      {R"({"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008,
           "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 50304,
           "max_position_embeddings": 2048})",
       6'888'095'744},  // OLMo-7B-hf
      {R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
           "num_attention_heads": 64, "num_key_value_heads": 64, "num_hidden_layers": 40,
           "vocab_size": 256000, "max_position_embeddings": 8192})",
       34'980'831'232},  // c4ai-command-r-v01
  });
}

TEST(ModelFiles, KnowWhichFamiliesTieTheirTables) {
  expect_known({
      {R"({"model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "head_dim": 256,
           "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 28,
           "vocab_size": 256000, "max_position_embeddings": 8192})",
       8'537'680'896},  // gemma-7b
      {R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "head_dim": 256,
           "num_attention_heads": 8, "num_key_value_heads": 1, "num_hidden_layers": 18,
           "vocab_size": 256000, "max_position_embeddings": 8192})",
       2'506'172'416},  // gemma-2b
      {R"({"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "head_dim": 256,
           "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 42,
           "vocab_size": 256000, "max_position_embeddings": 8192})",
       9'241'705'984},  // gemma-2-9b
      {R"({"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
           "num_attention_heads": 24, "num_key_value_heads": 2, "num_hidden_layers": 30,
           "vocab_size": 49152, "max_position_embeddings": 16384})",
       3'030'371'328},  // starcoder2-3b
  });
}

TEST(ModelFiles, CountTheParametersOfGptsAndTheirLike) {
  expect_known({
      {R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
           "vocab_size": 50257, "resid_pdrop": 0.1})",
       124'439'808},  // gpt2
      {R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
           "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
           "max_position_embeddings": 2048, "tie_word_embeddings": false})",
       20'554'567'680},  // gpt-neox-20b
      {R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_attention_heads": 32,
           "num_hidden_layers": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
           "word_embed_proj_dim": 4096, "dropout": 0.1})",
       6'658'473'984},  // opt-6.7b
      {R"({"model_type": "bloom", "n_embed": 14336, "num_attention_heads": 112, "n_layer": 70,
           "vocab_size": 250880, "seq_length": 2048, "hidden_dropout": 0.0})",
       176'247'271'424},  // bloom
      {R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
           "num_hidden_layers": 32, "vocab_size": 65024, "multi_query": true,
           "new_decoder_architecture": false, "hidden_dropout": 0.0})",
       6'921'720'704},  // falcon-7b
  });
}

// Without their experts they would be other models: 7 B parameters instead of 47 B.
TEST(ModelFiles, OfMixturesWithoutTheirExpertsAreRefused) {
  const std::string rest = R"("hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128,
      "num_attention_heads": 32, "num_key_value_heads": 4, "num_hidden_layers": 48,
      "num_experts_per_tok": 2, "vocab_size": 32000, "max_position_embeddings": 32768})";
  const auto complaint_of = [&](const std::string& keys) {
    return complaint("{" + keys + ", " + rest);
  };
  EXPECT_NE(complaint_of(R"("model_type": "mixtral")").find("lacks the key 'num_local_experts'"),
            std::string::npos);
  EXPECT_NE(complaint_of(R"("model_type": "qwen3_moe")").find("lacks the key 'num_experts'"),
            std::string::npos);
  EXPECT_NE(complaint_of(R"("model_type": "qwen3_moe", "num_experts": 128)")
                .find("lacks the key 'moe_intermediate_size'"),
            std::string::npos);
  EXPECT_EQ(complaint_of(R"("model_type": "deepseek_v2", "n_routed_experts": null)"), "none");
}

TEST(ModelFiles, CountTheParametersOfMixturesOfExperts) {
  expect_known({
      {R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
           "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
           "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
           "max_position_embeddings": 32768})",
       46'702'792'704},  // Mixtral-8x7B-v0.1
      {R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
           "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
           "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 24,
           "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1,
           "vocab_size": 151936, "max_position_embeddings": 8192})",
       14'315'784'192},  // Qwen1.5-MoE-A2.7B
      {R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
           "moe_intermediate_size": 768, "head_dim": 128, "num_attention_heads": 32,
           "num_key_value_heads": 4, "num_hidden_layers": 48, "num_experts": 128,
           "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960})",
       30'532'122'624},  // Qwen3-30B-A3B
      {R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
           "moe_intermediate_size": 1408, "num_attention_heads": 16, "num_key_value_heads": 16,
           "num_hidden_layers": 27, "n_routed_experts": 64, "n_shared_experts": 2,
           "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": null,
           "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
           "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840})",
       15'706'484'224},  // DeepSeek-V2-Lite
      {R"({"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288,
           "moe_intermediate_size": 1536, "num_attention_heads": 128, "num_key_value_heads": 128,
           "num_hidden_layers": 60, "n_routed_experts": 160, "n_shared_experts": 2,
           "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": 1536,
           "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
           "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840})",
       236e9},  // DeepSeek-V2, arXiv 2405.04434, abstract
      {R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
           "moe_intermediate_size": 2048, "num_attention_heads": 128, "num_key_value_heads": 128,
           "num_hidden_layers": 61, "n_routed_experts": 256, "n_shared_experts": 1,
           "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536,
           "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
           "v_head_dim": 128, "vocab_size": 129280, "max_position_embeddings": 163840,
           "num_nextn_predict_layers": 1, "tie_word_embeddings": false})",
       671e9},  // DeepSeek-V3, arXiv 2412.19437, abstract
  });
}

std::vector<std::string> notes_of(const std::string& keys) {
  return traces::parse_model("{" + keys +
                                 R"("hidden_size": 4096, "num_attention_heads": 32,
                                    "num_hidden_layers": 32, "vocab_size": 32000})",
                             "config.json")
      .notes;
}

// The defaults of transformers' configuration classes: LlamaConfig's layers are 11008 wide, so that
// the model is Llama-2-7b and not one of 4 * 4096; MistralConfig has 8 key-value heads.
TEST(ModelFiles, TakeMissingKeysFromTheDefaultsOfTheirFamily) {
  const std::string sizes = R"("hidden_size": 4096, "num_attention_heads": 32,
      "num_hidden_layers": 32, "vocab_size": 32000, "max_position_embeddings": 4096})";
  EXPECT_EQ(parameters_of(R"({"model_type": "llama", )" + sizes), 6'738'415'616);
  EXPECT_EQ(parameters_of(R"({"model_type": "mistral", )" + sizes), 7'241'732'096);
  EXPECT_EQ(notes_of(R"("model_type": "mistral", )"),
            (std::vector<std::string>{
                "no num_key_value_heads: 8 is transformers' default for mistral",
                "no intermediate_size: 14336 is transformers' default for mistral",
                "no max_position_embeddings: 131072 is transformers' default for mistral"}));
  EXPECT_EQ(notes_of(R"("model_type": "bloom", )"),
            (std::vector<std::string>{
                "no max_position_embeddings: 2048 is transformers' default for bloom"}));
}

TEST(ModelFiles, RefuseMissingKeysWithoutADefault) {
  const std::string sizes = R"("hidden_size": 896, "num_attention_heads": 14,
      "num_hidden_layers": 24, "vocab_size": 32000})";
  EXPECT_NE(complaint("{" + sizes).find("intermediate_size"), std::string::npos);
  // Qwen2Config's 32 key-value heads do not divide 14 heads.
  EXPECT_NE(complaint(R"({"model_type": "qwen2", )" + sizes).find("num_key_value_heads"),
            std::string::npos);
}

TEST(ModelFiles, NameKeysThatLookMisspelt) {
  const std::string rest = R"("intermediate_size": 14336, "max_position_embeddings": 4096, )";
  EXPECT_EQ(notes_of(R"("num_key_value_head": 8, )" + rest),
            (std::vector<std::string>{
                "'num_key_value_head' is not read; 'num_key_value_heads' would be"}));
  // Keys that are not read and mean something else.
  EXPECT_EQ(notes_of(R"("hidden_act": "silu", "rope_theta": 1e4, "num_key_value_heads": 8,
                        "attn_pdrop": 0.1, "n_group": 8, "initializer_range": 0.02, )" +
                     rest),
            std::vector<std::string>{});
}

TEST(ModelFiles, RefuseArchitecturesThatAreNotKnown) {
  const std::string unknown = complaint(R"({"model_type": "mamba", "hidden_size": 2048})");
  EXPECT_NE(unknown.find("/model_type"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("'mamba' is not one of the architectures that are known (bloom, cohere"),
            std::string::npos)
      << unknown;
}

TEST(ModelFiles, RefuseWhatAKnownArchitectureCanAlsoBe) {
  const std::string rest =
      R"("num_attention_heads": 16, "num_hidden_layers": 24, "vocab_size": 50272,)"
      R"("max_position_embeddings": 2048)";
  // opt-350m's tables are narrower than its layers; layers of a DeepSeek may alternate.
  EXPECT_NE(complaint(R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096,
                          "word_embed_proj_dim": 512, )" +
                      rest + "}")
                .find("/word_embed_proj_dim: must be 1024"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"hidden_size": 2048, "num_experts": 60, "num_experts_per_tok": 4,
                          "moe_intermediate_size": 1408, "moe_layer_freq": 2, )" +
                      rest + "}")
                .find("/moe_layer_freq: must be 1"),
            std::string::npos);
}

// Half of the 24 layers lose 60 experts and their router for one dense network: of 3 x 2048 weights
// for each of 60 x 1408 and of 5632 columns, and 2048 x 60 of the router.
TEST(ModelFiles, ReadExpertsOfEverySecondLayer) {
  const auto parameters = [](const std::string& step) {
    return count_total_parameters(
        traces::parse_model(R"({"model_type": "qwen2_moe", "hidden_size": 2048,
            "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_attention_heads": 16,
            "num_key_value_heads": 16, "num_hidden_layers": 24, "num_experts": 60,
            "num_experts_per_tok": 4, "vocab_size": 151936, "decoder_sparse_step": )" +
                                step + "}",
                            "config.json")
            .model);
  };
  EXPECT_EQ(parameters("1") - parameters("2"),
            12 * (std::int64_t{3} * 2048 * (60 * 1408 - 5632) + 2048 * 60));
}

TEST(ModelFiles, RefuseTypesOfLayersThatAreNotThere) {
  const std::string model =
      R"("hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100,)"
      R"("intermediate_size": 128,)"
      R"("sliding_window": 8, "layer_types": )";
  for (const char* types : {R"([])", R"(["full_attention"])",
                            R"(["full_attention", "full_attention", "sliding_attention"])"})
    EXPECT_NE(complaint("{" + model + types + "}").find("for 2 layers; give one per layer"),
              std::string::npos)
        << types;
}

std::int64_t local_layers_of(const std::string& keys) {
  const std::string rest =
      R"("hidden_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 6, "vocab_size": 1000)";
  return traces::parse_model("{" + keys + rest + "}", "config.json").model.local_layers;
}

// A window without more holds for every layer, as in Mistral 7B v0.1; Qwen's counts if it is used.
TEST(ModelFiles, KnowWhichLayersAreLocal) {
  EXPECT_EQ(local_layers_of(R"("model_type": "mistral", "sliding_window": 4096, )"), 6);
  EXPECT_EQ(local_layers_of(R"("model_type": "mistral", "sliding_window": null, )"), 0);
  EXPECT_EQ(local_layers_of(R"("model_type": "qwen2", "sliding_window": 131072, )"), 0);
  EXPECT_EQ(local_layers_of(R"("model_type": "gemma2", "sliding_window": 4096, )"), 3);
  EXPECT_EQ(local_layers_of(R"("model_type": "gemma3_text", "sliding_window": 1024,
                               "sliding_window_pattern": 6, )"),
            5);
  EXPECT_EQ(local_layers_of(R"("model_type": "gemma3_text", "sliding_window": 1024, )"), 5);
  EXPECT_EQ(local_layers_of(
                R"("model_type": "gpt_oss", "num_local_experts": null, "sliding_window": 128, )"),
            3);
  EXPECT_EQ(
      local_layers_of(
          R"("model_type": "gpt_oss", "num_local_experts": null, "sliding_window": 128, "layer_types":
                               ["sliding_attention", "full_attention", "sliding_attention",
                                "full_attention", "sliding_attention", "full_attention"], )"),
      3);
}

TEST(ModelFiles, KnowWhichArchitecturesHaveNormsOfQueriesAndKeys) {
  const auto has_norms = [](const std::string& type) {
    const std::string text = R"({"model_type": ")" + type + R"(", "hidden_size": 1024,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8,
        "intermediate_size": 4096, "vocab_size": 1000, "num_experts": null})";
    return traces::parse_model(text, "config.json").model.query_key_norms;
  };
  for (const char* type : {"qwen3", "qwen3_moe", "olmo2", "gemma3_text"})
    EXPECT_TRUE(has_norms(type)) << type;
  for (const char* type : {"qwen2", "qwen2_moe", "llama", "olmo", "gemma2"})
    EXPECT_FALSE(has_norms(type)) << type;
}

}  // namespace
}  // namespace bubblescope::tests
