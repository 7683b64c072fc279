// Lists what a training depends on.
#include "exec/training/training_identity.h"

#include "exec/training/program_updates.h"
#include "sim/ir/digest.h"

namespace bubblescope::exec {

namespace {

/// The order determines in which order gradients are added, the placement and the weight versions
/// what they are made of.
std::string digest_order(const Schedule& schedule) {
  std::uint64_t all =
      digest_values(schedule.replicas_of_stage, digest_values(schedule.rank_of_stage));
  for (const std::vector<std::int32_t>& turns : schedule.turns_of_stage)
    all = digest_values(turns, all);
  for (const std::vector<std::int32_t>& inputs : schedule.graph.inputs())
    all = digest_values(inputs, digest_values(std::vector{std::ssize(inputs)}, all));
  for (const RankOrder& ops : schedule.order) {
    std::string text;
    for (const Op& op : ops) text += to_string(op) + ' ';
    all = digest(text, all);
  }
  for (const std::vector<WeightUse>& uses : schedule.weights) {
    std::vector<std::int32_t> versions;
    for (const WeightUse& use : uses)
      versions.insert(versions.end(), {use.read, use.written.value_or(-1)});
    all = digest_values(versions, all);
  }
  return digest_text(all);
}

const char* precision_name(Precision precision) {
  return precision == Precision::kFloat32 ? "fp32" : "bf16";
}

const char* optimizer_name(OptimizerOptions::Kind kind) {
  return kind == OptimizerOptions::Kind::kAdam ? "adam" : "sgd";
}

std::string value_of(const TrainingIdentity& identity, const std::string& name) {
  for (const auto& [known, value] : identity)
    if (known == name) return value;
  return "nothing";
}

}  // namespace

TrainingIdentity identify_training(const Schedule& schedule, const Program& program,
                                   const TrainingOptions& options, const Processes& processes) {
  const TransformerShape& model = options.model;
  const auto text = [](auto number) { return std::to_string(number); };
  return {
      {"schedule", schedule.name},
      {"`pp`", text(schedule.shape.ranks)},
      {"`vpp`", text(schedule.shape.chunks)},
      {"`microbatches`", text(schedule.shape.microbatches)},
      {"`slices`", text(schedule.shape.slices)},
      {"stages", text(schedule.stages())},
      {"order of ops", digest_order(schedule)},
      {"optimizer steps",
       find_program_updates(schedule, program).updates ? "in the program" : "after the program"},
      {"`layers_per_stage`", text(model.blocks_per_stage)},
      {"`hidden_size`", text(model.width)},
      {"`num_attention_heads`", text(model.heads)},
      {"`seq_length`", text(model.sequence)},
      {"`micro_batch_size`", text(model.batch)},
      {"`vocab_size`", text(model.vocabulary)},
      {"`precision`", precision_name(model.precision)},
      {"`training_optimizer`", optimizer_name(options.optimizer.kind)},
      {"learning rate", text(options.optimizer.learning_rate)},
      {"`seed`", text(options.seed)},
      {"processes", text(processes.count())}};
}

std::string describe_differences(const TrainingIdentity& there, const TrainingIdentity& here) {
  std::string differences;
  const auto note = [&](const std::string& name) {
    const std::string other = value_of(there, name);
    const std::string own = value_of(here, name);
    if (other == own) return;
    differences +=
        (differences.empty() ? "" : ", ") + name + ' ' + other + " there and " + own + " here";
  };
  for (const auto& [name, value] : here) note(name);
  for (const auto& [name, value] : there)
    if (value_of(here, name) == "nothing") note(name);
  return differences;
}

std::uint64_t digest_weights(const std::vector<Stage>& stages) {
  std::uint64_t all = 0;
  for (const Stage& stage : stages)
    for (const Matrix& weight : stage.weights) {
      all = digest_values(std::vector<std::int32_t>{weight.rows, weight.columns}, all);
      all = digest_values(weight.values, all);
    }
  return all;
}

}  // namespace bubblescope::exec
