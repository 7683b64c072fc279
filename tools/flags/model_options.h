// Flags that take costs and memory from a model instead of numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/layer_cost.h"
#include "sim/model/runtime.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// The heading of --help for flags that need --model.
inline constexpr const char* kModelHeading = "A model instead of costs";

/// The help of --etp, also where it takes a list.
inline constexpr const char* kExpertTensorHelp =
    "tensor-parallel ranks of an expert (default: --tp where --ep divides --dp times --cp, else 1)";

/// The features that a command line in Megatron-LM's words says nothing about: on here unless
/// turned off, and off there unless turned on.
struct UnstatedDefaults {
  bool precision = false;  ///< --bf16
  bool sequence_parallel = false;
  bool sharding = false;                    ///< --use-distributed-optimizer
  bool reduction = false;                   ///< --overlap-grad-reduce
  bool gather = false;                      ///< --overlap-param-gather
  std::optional<Gradients> gradients = {};  ///< those that Megatron-LM has then
};

struct ModelOptions {
  std::string model;  ///< a preset's name or a config.json; empty: no model
  std::string gpu = "h100";
  Parallelism parallel;
  std::optional<std::int64_t> sequence;
  std::string lengths_file;  ///< --lengths; empty where not given
  std::optional<std::int32_t> per_node;
  std::optional<std::int64_t> global_batch;  ///< samples of a step, from which -m follows
  bool save_scores = false;                  ///< no flash attention
  bool full_attention = false;
  bool explain = false;
  std::string runtime{kDefaultRuntime};
  MatrixType matrices = MatrixType::kBf16;
  std::vector<std::string> assumed;  ///< "name=value"
  std::optional<std::int32_t> zero_stage;
  double slowdown = 1;
  std::optional<PartsOfModel> parts;  ///< nullopt: ops are whole
  std::optional<double> tensor_exposed;
  std::optional<double> message_exposed;
  std::optional<double> accumulation_bytes;
  std::string reserve_memory = "0.5GiB";  ///< of a device's memory: bytes, or "5%"
  std::optional<Gradients> gradients;     ///< nullopt: the first that fits
  std::optional<RecomputeMethod> recompute_method;
  std::optional<std::int32_t> recompute_layers;  ///< --recompute-num-layers
  UnstatedDefaults unstated;
  bool tries_splits = true;  ///< of the layers; false where an order was found for balanced ones

  bool given() const { return !model.empty(); }
};

/// Adds what stays the same in a sweep: the model, the device, how they are used.
void add_swept_model_options(CommandFlags& app, ModelOptions& options);
/// Adds how the layers are split among stages, but for numbers of layers stage by stage.
void add_layer_options(CommandFlags& app, ModelOptions& options);
void add_explain_option(CommandFlags& app, ModelOptions& options);
/// Adds all flags of one configuration: every command that predicts one takes the same.
void add_model_options(CommandFlags& app, ModelOptions& options);
/// The same without --seq-length, --micro-batch-size and --precision, which shared_sizes.h adds
/// where a command runs transformers as well.
void add_configuration_options(CommandFlags& app, ModelOptions& options);

/// Warns about flags of these that were given without --model.
void warn_without_model(const CommandFlags& app, const ModelOptions& options);

}  // namespace bubblescope::tools
