// Writes what was trained.
#include "tools/commands/training_file.h"

#include "traces/json/json_writer.h"

namespace bubblescope::tools {

namespace {

using traces::JsonWriter;

void write_model(JsonWriter& json, const exec::TransformerShape& shape) {
  json.key("model").begin_object().member("blocks_per_stage", shape.blocks_per_stage);
  json.member("width", shape.width).member("heads", shape.heads);
  json.member("vocabulary", shape.vocabulary).member("sequence", shape.sequence);
  json.member("batch", shape.batch).end_object();
}

void write_optimizer(JsonWriter& json, const exec::OptimizerOptions& optimizer) {
  const bool adam = optimizer.kind == exec::OptimizerOptions::Kind::kAdam;
  json.key("optimizer").begin_object().member("kind", adam ? "adam" : "sgd");
  json.member("learning_rate", optimizer.learning_rate).end_object();
}

void write_stage(JsonWriter& json, const exec::Stage& before, const exec::Stage& after) {
  json.begin_object().key("weights").begin_array();
  for (std::size_t at = 0; at < after.weights.size(); ++at) {
    json.begin_object().member("name", after.names[at]).member("rows", after.weights[at].rows);
    json.member("columns", after.weights[at].columns);
    json.array("before", before.weights[at].values).array("after", after.weights[at].values);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_data(JsonWriter& json, const exec::TrainingOptions& options, std::size_t steps,
                std::int32_t microbatches) {
  json.key("data").begin_array();
  for (std::size_t step = 0; step < steps; ++step) {
    json.begin_array();
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      const exec::Tokens tokens =
          exec::make_tokens(options, static_cast<std::int32_t>(step), microbatch);
      json.begin_object().array("inputs", tokens.inputs).array("targets", tokens.targets);
      json.end_object();
    }
    json.end_array();
  }
  json.end_array();
}

}  // namespace

std::string write_training(const exec::TrainingOptions& options, const Schedule& schedule,
                           const exec::TrainingResult& result) {
  const std::int32_t microbatches = schedule.shape.microbatches;
  const auto count = static_cast<std::int32_t>(result.stages.size());
  std::string text;
  JsonWriter json(text, {.ascii = true});
  json.begin_object().member("format", "bubblescope-training/1");
  write_model(json, options.model);
  write_optimizer(json, options.optimizer);
  json.member("microbatches", microbatches).key("stages").begin_array();
  for (std::int32_t stage = 0; stage < count; ++stage)
    write_stage(json, exec::make_stage(exec::plan_whole(schedule, options, stage)),
                result.stages[static_cast<std::size_t>(stage)]);
  json.end_array();
  write_data(json, options, result.losses.size(), microbatches);
  json.array("losses", result.losses).end_object();
  return text + '\n';
}

}  // namespace bubblescope::tools
