// Models, devices and their costs, compared with the papers' formulas and tables.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/ir/error.h"
#include "sim/ir/recompute.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"
#include "sim/model/stage_recompute.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/costs/model_file.h"

namespace bubblescope::tests {
namespace {

const Transformer& preset(const char* name) {
  return Registry<ModelDef>::instance().find(name)->model;
}

ModelOnDevices on_devices(const char* model, const char* gpu) {
  ModelOnDevices on;
  on.model = preset(model);
  on.gpu = Registry<GpuDef>::instance().find(gpu)->gpu;
  on.parallel.sequence = on.model.sequence;
  return on;
}

Bytes kept_bytes(const Transformer& model, const Parallelism& parallel) {
  return estimate_layer_memory(model, parallel, 0).forward;
}

Schedule loop(std::int32_t ranks, std::int32_t chunks = 1) {
  Schedule schedule;
  schedule.shape.ranks = ranks;
  schedule.shape.chunks = chunks;
  schedule.rank_of_stage = loop_placement(ranks, chunks);
  return schedule;
}

TEST(Models, HaveTheParametersThatTheirPapersState) {
  struct Known {
    const char* name;
    double billions;
    double tolerance;  ///< papers round, and differ in counting norms and biases
  };
  const Known known[] = {
      {"gpt3-175b", 174.6, 0.005},        // 2104.04473, table 2: 174.6 billion
      {"llama2-7b", 6.738, 0.001},        // 6,738,415,616 in the published checkpoint
      {"llama3-8b", 8.030, 0.001},        // 8,030,261,248
      {"llama3-70b", 70.554, 0.001},      // 70,553,706,496
      {"llama3-405b", 405.853, 0.001},    // 405,853,388,800
      {"mixtral-8x7b", 46.703, 0.001},    // 46,702,792,704
      {"deepseek-v3", 671.0, 0.002},      // 2412.19437, abstract
      {"deepseek-v2", 236.0, 0.01},       // 2405.04434, abstract
      {"deepseek-v2-lite", 15.7, 0.01},   // 2405.04434, appendix B
      {"kimi-k2", 1026.0, 0.01},          // 2507.20534: 1.04 trillion with its attention's biases
      {"llama3.2-1b", 1.236, 0.002},      // 1,235,814,400
      {"llama3.2-3b", 3.213, 0.002},      // 3,212,749,824
      {"llama4-scout", 107.8, 0.01},      // 109 billion with its images' encoder
      {"llama4-maverick", 400.7, 0.01},   // 400 billion; 24 layers of 48 have experts
      {"qwen2-57b-a14b", 57.41, 0.002},   // its page: 57.4 billion
      {"qwen2.5-7b", 7.616, 0.002},       // 7,615,616,512
      {"qwen2.5-72b", 72.7, 0.002},       // its page
      {"qwen3-8b", 8.191, 0.002},         // 8,190,735,360
      {"qwen3-32b", 32.762, 0.002},       // 32,762,123,264
      {"qwen3-30b-a3b", 30.5, 0.005},     // 2505.09388, table 2
      {"qwen3-235b-a22b", 235.0, 0.005},  // the same
      {"mistral-7b", 7.248, 0.002},       // 7,248,023,552
      {"mistral-large-123b", 122.6, 0.005},
      {"gpt-oss-20b", 20.9, 0.01},        // 2508.10925, table 1
      {"gpt-oss-120b", 116.8, 0.01},      // the same
      {"grok1-314b", 316, 0.01},          // xai-org/grok-1: 314 billion
      {"nemotron4-340b", 341, 0.01},      // 2406.11704
      {"megatron-530b", 529.6, 0.01},     // 2205.05198, table 3
      {"zero-bubble-14.6b", 14.6, 0.02},  // 2401.10241, table 3
  };
  for (const Known& one : known)
    EXPECT_NEAR(static_cast<double>(count_total_parameters(preset(one.name))) / 1e9, one.billions,
                one.tolerance * one.billions)
        << one.name;
}

TEST(Models, DeepSeekActivates37BillionParameters) {
  // 2412.19437: 37 billion per token, of which the tables' 0.93 are looked up once.
  const Transformer& model = preset("deepseek-v3");
  double active =
      static_cast<double>(count_head_parameters(model) + count_embedding_parameters(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    active += static_cast<double>(count_layer_parameters(model, layer).active());
  EXPECT_NEAR(active / 1e9, 37, 1);
}

TEST(Models, EveryPresetIsSoundAndNamesItsSource) {
  for (const ModelDef& def : Registry<ModelDef>::instance().all()) {
    EXPECT_TRUE(find_faults(def.model).empty()) << def.name;
    EXPECT_FALSE(def.source.empty()) << def.name;
  }
  for (const GpuDef& def : Registry<GpuDef>::instance().all()) {
    EXPECT_LT(def.gpu.reachable_flops, def.gpu.peak_flops) << def.name;
    EXPECT_FALSE(def.source.empty()) << def.name;
  }
}

TEST(Models, AreTheseAndNoOthers) {
  std::set<std::string> names;
  for (const ModelDef& def : Registry<ModelDef>::instance().all()) names.insert(def.name);
  EXPECT_EQ(names,
            (std::set<std::string>{"deepseek-v2",       "deepseek-v2-lite",   "deepseek-v3",
                                   "gemma3-12b",        "gemma3-1b",          "gemma3-27b",
                                   "gemma3-4b",         "gpt-oss-120b",       "gpt-oss-20b",
                                   "gpt3-1.3b",         "gpt3-125m",          "gpt3-13b",
                                   "gpt3-175b",         "gpt3-2.7b",          "gpt3-350m",
                                   "gpt3-6.7b",         "gpt3-760m",          "grok1-314b",
                                   "kimi-k2",           "llama2-13b",         "llama2-70b",
                                   "llama2-7b",         "llama3-405b",        "llama3-70b",
                                   "llama3-8b",         "llama3.2-1b",        "llama3.2-3b",
                                   "llama4-maverick",   "llama4-scout",       "megatron-175b",
                                   "megatron-1t",       "megatron-22b",       "megatron-530b",
                                   "mistral-7b",        "mistral-large-123b", "mistral-nemo-12b",
                                   "mistral-small-24b", "mixtral-8x22b",      "mixtral-8x7b",
                                   "nemotron4-15b",     "nemotron4-340b",     "qwen2-57b-a14b",
                                   "qwen2.5-0.5b",      "qwen2.5-1.5b",       "qwen2.5-14b",
                                   "qwen2.5-32b",       "qwen2.5-3b",         "qwen2.5-72b",
                                   "qwen2.5-7b",        "qwen3-0.6b",         "qwen3-1.7b",
                                   "qwen3-14b",         "qwen3-235b-a22b",    "qwen3-30b-a3b",
                                   "qwen3-32b",         "qwen3-4b",           "qwen3-8b",
                                   "zero-bubble-1.5b",  "zero-bubble-14.6b",  "zero-bubble-28.3b",
                                   "zero-bubble-6.2b"}));
  names.clear();
  for (const GpuDef& def : Registry<GpuDef>::instance().all()) names.insert(def.name);
  EXPECT_EQ(names, (std::set<std::string>{
                       "a10",          "a100",     "a100-40",      "a100-pcie", "a100-pcie-40",
                       "a10g",         "a40",      "a800",         "b200",      "b300",
                       "gb200",        "gb300",    "gh200",        "gh200-144", "h100",
                       "h100-hbm2e",   "h100-nvl", "h100-pcie",    "h20",       "h200",
                       "h200-nvl",     "h800",     "l4",           "l40",       "l40s",
                       "mi300x",       "mi325x",   "mi355x",       "p100",      "rtx-3090",
                       "rtx-4090",     "rtx-5090", "rtx-6000-ada", "rtx-a5000", "rtx-a6000",
                       "rtx-pro-6000", "tpu-v3",   "tpu-v4",       "v100"}));
  names.clear();
  for (const RuntimeDef& def : Registry<RuntimeDef>::instance().all()) names.insert(def.name);
  EXPECT_EQ(names,
            (std::set<std::string>{"deepspeed", "fsdp", "fsdp-2.11", "llm-foundry", "megatron",
                                   "megatron-2021", "megatron-bridge-26.06", "nemo", "nemo-24.07",
                                   "nemo-automodel", "torchtitan", "torchtitan-2.11"}));
}

TEST(Activations, AreTheFormulasOf220505198) {
  const std::int64_t s = 2048;
  const std::int64_t b = 2;
  for (const char* name : {"megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t"})
    for (const std::int32_t t : {1, 2, 4, 8}) {
      const Transformer& model = preset(name);
      const std::int64_t h = model.hidden;
      const std::int64_t a = model.heads;
      Parallelism parallel;
      parallel.tensor = t;
      parallel.micro_batch_size = static_cast<std::int32_t>(b);
      parallel.sequence = s;
      parallel.flash_attention = false;
      // Table 2, row by row; all of it is divisible.
      EXPECT_EQ(kept_bytes(model, parallel), s * b * h * 34 / t + 5 * a * s * s * b / t) << name;
      parallel.sequence_parallel = false;
      EXPECT_EQ(kept_bytes(model, parallel), s * b * h * (10 * t + 24) / t + 5 * a * s * s * b / t);
      parallel.recompute = Recompute::kSelective;
      EXPECT_EQ(kept_bytes(model, parallel), s * b * h * (10 * t + 24) / t);
      parallel.recompute = Recompute::kFull;
      EXPECT_EQ(kept_bytes(model, parallel), 2 * s * b * h);
    }
}

TEST(Activations, OfAWeightGradientAre32sbh) {
  // 2401.10241, section 2.2: M_B = s b h (34 + 5 a s / h), M_W = 32 s b h.
  const Transformer& model = preset("zero-bubble-6.2b");
  Parallelism parallel;
  parallel.sequence = 1024;
  parallel.micro_batch_size = 3;
  parallel.flash_attention = false;
  const MemoryDelta delta = estimate_layer_memory(model, parallel, 0);
  const Bytes sbh = 1024 * 3 * 4096;
  EXPECT_EQ(delta.forward, 34 * sbh + Bytes{5} * 32 * 1024 * 1024 * 3);
  EXPECT_EQ(delta.forward + delta.input_grad, 32 * sbh);
  EXPECT_EQ(delta.forward + delta.input_grad + delta.weight_grad, 0);
}

TEST(States, Are18BytesPerParameter) {
  // 2205.05198, figure 1: 45.5625 GiB for 175 billion with t = 8, p = 8: 18 bytes of 1/64 of
  // 12 L h^2 + the tables' share. One middle stage: 12 layers of 12 h^2 + 4 h each, over 8.
  ModelOnDevices on = on_devices("megatron-175b", "a100");
  on.parallel.tensor = 8;
  on.parallel.embedding_layers = on.parallel.head_layers = 0;
  const ModelStep step = compute_model_step(on, loop(8));
  const StateBytes& states = step.states[3];
  const Bytes parameters = 12 * (12LL * 12'288 * 12'288 / 8 + 4 * 12'288);
  EXPECT_EQ(states.weights + states.gradients + states.optimizer, 18 * parameters);
}

TEST(States, OfTwoReplicasAreTwice) {
  // DualPipe holds every stage twice (2412.19437, table 2: 2x parameters).
  ModelOnDevices on = on_devices("megatron-22b", "h100");
  on.parallel.embedding_layers = on.parallel.head_layers = 0;
  Schedule both;
  both.shape.ranks = 4;
  both.pipelines = 2;
  both.rank_of_stage = bidirectional_placement(4);
  const ModelStep one = compute_model_step(on, loop(4));
  const ModelStep two = compute_model_step(on, both);
  EXPECT_EQ(two.states[1].weights, one.states[1].weights + one.states[2].weights);
}

TEST(States, ShrinkWithTheZeroStage) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.data = 8;
  std::vector<StateBytes> of_stage;
  for (const std::int32_t stage : {0, 1, 2, 3}) {
    on.parallel.zero_stage = stage;
    of_stage.push_back(compute_model_step(on, loop(4)).states[1]);
  }
  // 2 + 4 + 12, 2 + 4 + 12/8, 2 + (4 + 12)/8, 18/8 bytes per parameter (1910.02054, section 5).
  EXPECT_EQ(of_stage[1].optimizer, of_stage[0].optimizer / 8);
  EXPECT_EQ(of_stage[1].gradients, of_stage[0].gradients);
  EXPECT_EQ(of_stage[2].gradients, of_stage[0].gradients / 8);
  EXPECT_EQ(of_stage[2].weights, of_stage[0].weights);
  EXPECT_EQ(of_stage[3].weights, of_stage[0].weights / 8);
}

TEST(LayerCosts, AttentionsCoreIsInTheInputGradient) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.sequence = 1024;
  const PhaseTimes short_ones = estimate_layer_times(on, 0);
  on.parallel.sequence = 65'536;
  const PhaseTimes long_ones = estimate_layer_times(on, 0);
  EXPECT_LT(short_ones.input_grad / short_ones.weight_grad, 1.6);
  EXPECT_GT(long_ones.input_grad / long_ones.weight_grad, 3.0);
}

TEST(LayerCosts, RecomputingAddsItsForwardToTheInputGradient) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  const PhaseTimes none = estimate_layer_times(on, 0);
  on.parallel.recompute = Recompute::kFull;
  const PhaseTimes full = estimate_layer_times(on, 0);
  EXPECT_DOUBLE_EQ(full.input_grad, none.input_grad + none.forward);
  EXPECT_DOUBLE_EQ(full.forward, none.forward);
}

TEST(LayerCosts, ARecomputeOpTakesWhatRecomputationAddsToTheBackward) {
  // 32 layers on 4 stages of 1F1B; stage 1 has layers alone, no embedding and no head.
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 4;
  const Schedule plain = build_schedule(find_schedule("1f1b"), request);
  const ModelOnDevices on = on_devices("llama3-8b", "h100");
  const ModelStep step = compute_model_step(on, plain);
  const std::int64_t layers = step.first_layer[2] - step.first_layer[1];
  const Schedule full = with_recompute(plain, {Recompute::kFull});
  const StageRecompute again = estimate_stage_recompute(on, step, full, 1);
  EXPECT_EQ(again.time,
            std::llround(static_cast<double>(layers) * estimate_layer_times(on, 1).forward));
  ModelOnDevices checkpoints = on;
  checkpoints.parallel.recompute = Recompute::kFull;
  EXPECT_EQ(step.activation_bytes[1].forward - again.freed_bytes,
            layers * estimate_layer_memory(on.model, checkpoints.parallel, 1).forward);
  const Schedule none = with_recompute(
      plain, {Recompute::kFull, Recompute::kNone, Recompute::kFull, Recompute::kFull});
  EXPECT_EQ(estimate_stage_recompute(on, step, none, 1).time, 0);
  EXPECT_EQ(estimate_stage_recompute(on, step, none, 1).freed_bytes, 0);
}

TEST(LayerCosts, AreNearTheMeasuredOnesOf220505198) {
  // Table 4, one layer of 22B, t = 8, 4 samples of 2,048 tokens, scores saved: forward 7.7 ms and
  // backward 11.9 ms, with sequence parallelism 7.2 and 11.8. The elementwise rate is a compromise
  // between them and F and I of arXiv 2401.10241, table 9.
  ModelOnDevices on = on_devices("megatron-22b", "a100");
  on.parallel.tensor = 8;
  on.parallel.micro_batch_size = 4;
  on.parallel.flash_attention = false;
  on.assumptions.causal = false;
  const PhaseTimes split = estimate_layer_times(on, 0);
  EXPECT_NEAR(split.forward / 1e6, 7.2, 0.02 * 7.2);
  EXPECT_NEAR((split.input_grad + split.weight_grad) / 1e6, 11.8, 0.03 * 11.8);
  on.parallel.sequence_parallel = false;
  const PhaseTimes whole = estimate_layer_times(on, 0);
  EXPECT_NEAR(whole.forward / 1e6, 7.7, 0.03 * 7.7);
  EXPECT_NEAR((whole.input_grad + whole.weight_grad) / 1e6, 11.9, 0.07 * 11.9);
  on.parallel.recompute = Recompute::kSelective;  // 13.2 ms
  const PhaseTimes again = estimate_layer_times(on, 0);
  EXPECT_NEAR((again.input_grad + again.weight_grad) / 1e6, 13.2, 0.07 * 13.2);
}

// 2401.10241, table 9: T_F, T_B and T_W of 3, 4, 3 and 2 layers on an A100. W consists of GEMMs
// alone, to which their rate was fitted.
TEST(LayerCosts, AreNearTheMeasuredOnesOf240110241) {
  struct Measured {
    const char* model;
    std::int32_t micro_batch_size;
    int layers;
    double forward, input_grad, weight_grad;  ///< milliseconds
  };
  const Measured measured[] = {{"zero-bubble-1.5b", 6, 3, 18.522, 18.086, 9.337},
                               {"zero-bubble-6.2b", 3, 4, 29.718, 29.444, 19.927},
                               {"zero-bubble-14.6b", 1, 3, 11.347, 11.248, 8.132},
                               {"zero-bubble-28.3b", 1, 2, 10.419, 10.207, 7.715}};
  for (const Measured& stage : measured) {
    ModelOnDevices on = on_devices(stage.model, "a100");
    on.parallel.micro_batch_size = stage.micro_batch_size;
    on.parallel.flash_attention = false;
    on.assumptions.causal = false;
    const PhaseTimes times = estimate_layer_times(on, 0);
    const double layers = stage.layers / 1e6;
    EXPECT_NEAR(layers * times.forward / stage.forward, 1, 0.11) << stage.model;
    EXPECT_NEAR(layers * times.input_grad / stage.input_grad, 1, 0.05) << stage.model;
    EXPECT_NEAR(layers * times.weight_grad / stage.weight_grad, 1, 0.02) << stage.model;
  }
}

TEST(Collectives, AreRingsOrTreesWhicheverIsFaster) {
  const Link link{10'000, 100e9};
  // 8 ranks, 800 MB: 2 * 7/8 of it at 100 GB/s is 14 ms, and 2 * 7 latencies.
  EXPECT_EQ(estimate_all_reduce_time(800e6, 8, link), 14'000'000 + 14 * 10'000);
  // Next to nothing: 2 * 3 latencies of a tree.
  EXPECT_EQ(estimate_all_reduce_time(0, 8, link), 6 * 10'000);
  EXPECT_EQ(estimate_all_reduce_time(800e6, 1, link), 0);
}

TEST(ModelSteps, RefuseLayersThatCannotBeSplit) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  EXPECT_EQ(error_of([&] { compute_model_step(on, loop(35)); }),
            "the model's 32 layers, its embedding and its head make at most 34 stages, not 35; "
            "give less of `pp` or `vpp`");  // 32 layers and two tables make at most 34 stages
  on.parallel.tensor = 3;
  EXPECT_EQ(error_of([&] { compute_model_step(on, loop(2)); }),
            "`tp` 3 does not divide the model's heads (32); give a divisor, such as 2");
}

TEST(ModelFiles, ReadConfigJson) {
  // Meta-Llama-3-8B's config.json, the keys that matter.
  const Transformer model =
      traces::parse_model(
          R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
          "intermediate_size": 14336, "max_position_embeddings": 8192, "num_attention_heads": 32,
          "num_hidden_layers": 32, "num_key_value_heads": 8, "tie_word_embeddings": false,
          "vocab_size": 128256})",
          "config.json")
          .model;
  EXPECT_EQ(count_total_parameters(model), count_total_parameters(preset("llama3-8b")));
}

TEST(ModelFiles, ReadExpertsAndLatentAttention) {
  const Transformer model =
      traces::parse_model(
          R"({"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
          "max_position_embeddings": 163840, "num_attention_heads": 128, "num_hidden_layers": 61,
          "num_key_value_heads": 128, "vocab_size": 129280, "n_routed_experts": 256,
          "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
          "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128})",
          "config.json")
          .model;
  EXPECT_EQ(count_total_parameters(model), count_total_parameters(preset("deepseek-v3")));
}

TEST(ModelFiles, NameMissingAndImpossibleValues) {
  const auto complaint = [](const char* text) {
    try {
      traces::parse_model(text, "config.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(complaint("{}").find("num_hidden_layers"), std::string::npos);
  EXPECT_NE(complaint(R"({"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 6,
                          "intermediate_size": 128, "num_key_value_heads": 4, "vocab_size": 9,
                          "max_position_embeddings": 8})")
                .find("multiple of the key-value heads"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"num_hidden_layers": -2})").find("/num_hidden_layers"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
