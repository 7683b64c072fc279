// Writes what was trained.
#include "tools/commands/training_file.h"

#include <nlohmann/json.hpp>

namespace bubblescope::tools {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const exec::TransformerShape& shape) {
  return {{"blocks_per_stage", shape.blocks_per_stage},
          {"width", shape.width},
          {"heads", shape.heads},
          {"vocabulary", shape.vocabulary},
          {"sequence", shape.sequence},
          {"batch", shape.batch}};
}

Json to_json(const exec::OptimizerOptions& optimizer) {
  const bool adam = optimizer.kind == exec::OptimizerOptions::Kind::kAdam;
  return {{"kind", adam ? "adam" : "sgd"}, {"learning_rate", optimizer.learning_rate}};
}

Json to_json(const exec::Stage& before, const exec::Stage& after) {
  Json weights = Json::array();
  for (std::size_t at = 0; at < after.weights.size(); ++at)
    weights.push_back({{"name", after.names[at]},
                       {"rows", after.weights[at].rows},
                       {"columns", after.weights[at].columns},
                       {"before", before.weights[at].values},
                       {"after", after.weights[at].values}});
  return {{"weights", std::move(weights)}};
}

Json data_json(const exec::TrainingOptions& options, std::size_t steps, std::int32_t microbatches) {
  Json data = Json::array();
  for (std::size_t step = 0; step < steps; ++step) {
    Json& one = data.emplace_back(Json::array());
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      const exec::Tokens tokens =
          exec::make_tokens(options, static_cast<std::int32_t>(step), microbatch);
      one.push_back({{"inputs", tokens.inputs}, {"targets", tokens.targets}});
    }
  }
  return data;
}

}  // namespace

std::string write_training(const exec::TrainingOptions& options, const Schedule& schedule,
                           const exec::TrainingResult& result) {
  const std::int32_t microbatches = schedule.shape.microbatches;
  const auto count = static_cast<std::int32_t>(result.stages.size());
  Json stages = Json::array();
  for (std::int32_t stage = 0; stage < count; ++stage)
    stages.push_back(to_json(exec::make_stage({options.model, stage, count, options.seed}),
                             result.stages[static_cast<std::size_t>(stage)]));
  const Json training{{"format", "bubblescope-training/1"},
                      {"model", to_json(options.model)},
                      {"optimizer", to_json(options.optimizer)},
                      {"microbatches", microbatches},
                      {"stages", std::move(stages)},
                      {"data", data_json(options, result.losses.size(), microbatches)},
                      {"losses", result.losses}};
  return training.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace bubblescope::tools
