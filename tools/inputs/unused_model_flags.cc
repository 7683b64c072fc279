// Pairs each flag of a model with what it needs to take effect.
#include "tools/inputs/unused_model_flags.h"

#include <algorithm>
#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/lower_collectives.h"
#include "sim/model/recompute_modules.h"
#include "sim/model/runtime.h"
#include "sim/model/transformer.h"
#include "sim/predict/unused_assumptions.h"
#include "tools/inputs/assumed_defaults.h"
#include "tools/inputs/given_flag.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// The order of --moe-overlap hides messages only where ops have parts that can interleave.
void note_exposed_experts(bool has_parts, bool has_experts) {
  if (!has_experts)
    print_message("bubblescope: --moe-overlap hides nothing here: the model has no experts\n");
  else if (!has_parts)
    print_message(
        "bubblescope: --moe-overlap hides nothing here, because ops have no parts that can "
        "interleave; add --parts megatron\n");
}

/// Whether the model has any of these modules.
bool has_any(const Transformer& model, const RecomputeModules& modules) {
  using Module = RecomputeModule;
  const std::optional<Experts>& experts = model.experts;
  const bool has_dense_layers = count_expert_layers(model, 0, model.layers) < model.layers;
  return modules.has(Module::kCoreAttention) || modules.has(Module::kLayerNorm) ||
         (model.latent && modules.has(Module::kUpProjection)) ||
         (has_dense_layers && modules.has(Module::kNetwork)) ||
         (experts && (modules.has(Module::kExperts) || modules.has(Module::kExpertActivation))) ||
         (experts && experts->shared > 0 && modules.has(Module::kSharedExperts));
}

constexpr const char* kOneCopy = "there is one copy of the weights; add --dp";

bool has_other_zero_stage(const ModelOptions& options) {
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(options.runtime);
  return options.zero_stage && runtime != nullptr && *options.zero_stage != runtime->zero_stage;
}

}  // namespace

bool reduce_by_themselves(std::span<const PredictedOps> steps) {
  return std::all_of(steps.begin(), steps.end(), [](const PredictedOps& step) {
    return posts_kind(*step.schedule, OpKind::kReduceGrad);
  });
}

const char* find_same_reductions(const ModelOnDevices& on, std::span<const PredictedOps> steps) {
  if (on.parallel.copies() == 1) return kOneCopy;
  if (on.assumptions.gradients_exposed >= 1) return "the runtime hides no reduction in any case";
  if (on.parallel.zero_stage >= 3) return "with --zero 3, every micro-batch reduces and gathers";
  if (on.parallel.zero_stage > 0) return nullptr;  // at least new weights are gathered later
  return reduce_by_themselves(steps) ? "the schedule has reductions of its own" : nullptr;
}

namespace {

void report_sharding(const PredictOptions& options, const ModelOnDevices& on,
                     std::span<const PredictedOps> steps) {
  const bool has_copies = on.parallel.copies() > 1;
  const auto& groups = options.model.parallel.shard_ranks;
  const bool is_serial = options.cost.end.reduction == GradReduction::kSerial;
  const char* const same = find_same_reductions(on, steps);
  const GivenFlag flags[] = {
      {"--zero", has_other_zero_stage(options.model), has_copies, kOneCopy},
      {"--shard-size", groups && *groups != on.parallel.copies(), on.parallel.zero_stage > 0,
       "nothing is sharded; add --zero"},
      {"--fsdp", options.shape.sharded, has_copies, kOneCopy},
      {"--grad-reduction", is_serial, same == nullptr, same},
  };
  report_unused(flags);
  if (options.shape.sharded && has_copies && on.parallel.zero_stage < 3)
    print_message(
        "bubblescope: --fsdp gathers nothing with --zero {}: every rank has the weights{}; add "
        "--zero 3\n",
        on.parallel.zero_stage,
        on.parallel.zero_stage == 2 ? ", and whole gradients until its reductions" : "");
}

void report_assumptions(const ModelOnDevices& on, std::span<const PredictedOps> steps) {
  for (const ReplacedAssumption& replaced : on.replaced_assumptions) {
    const bool is_used = std::any_of(steps.begin(), steps.end(), [&](const PredictedOps& step) {
      return changes_step(replaced, on, *step.schedule);
    });
    const GivenFlag flag[] = {
        {replaced.what.c_str(), true, is_used, "no time and no memory here depends on it"}};
    report_unused(flag);
  }
}

/// Says that experts are not divided over the tensor ranks, as Megatron-LM would by default and
/// then refuse these ranks.
void note_assumed_expert_ranks(const ModelOnDevices& on) {
  const Parallelism& parallel = on.parallel;
  const bool is_assumed = on.model.experts && !parallel.expert_tensor;
  if (!is_assumed || parallel.expert_split() == parallel.tensor) return;
  print_message(
      "bubblescope: --etp {} is assumed, because --ep {} does not divide --dp times --cp ({}){}\n",
      parallel.expert_split(), parallel.expert, parallel.copies(),
      names_modules(on.runtime)
          ? fmt::format("; by Megatron-LM's default it is --tp ({}), with which "
                        "these ranks cannot be divided",
                        parallel.tensor)
          : "");
}

/// FSDP gathers weights for every micro-batch outside pipelines alone.
void note_gathered_weights(const PredictOptions& options, const ModelOnDevices& on,
                           std::span<const PredictedOps> steps) {
  const Parallelism& parallel = on.parallel;
  const bool is_assumed = parallel.pytorch && !options.model.zero_stage && parallel.zero_stage == 3;
  if (!is_assumed || parallel.copies() == 1) return;
  if (std::any_of(steps.begin(), steps.end(), [](const PredictedOps& step) {
        return step.schedule->shape.ranks > 1 && !posts_collectives(*step.schedule);
      }))
    print_message(
        "bubblescope: --zero 3 is assumed, as {} has it outside pipelines; in a pipeline FSDP "
        "keeps weights gathered: --zero 1 predicts that\n",
        on.runtime);
}

/// Times are those of groups that lie in as few nodes as may be.
void note_divided_groups(const ModelOnDevices& on) {
  const std::int32_t tensor = on.parallel.tensor;
  const std::int32_t node = on.gpu.per_node;
  if (tensor > node)
    print_message(
        "bubblescope: a node has {}, so that --tp {} uses the network between nodes; "
        "--gpus-per-node says otherwise\n",
        counted(node, "device"), tensor);
  if (node % tensor == 0 || tensor % node == 0) return;
  print_message(
      "bubblescope: nodes of {} cannot be divided into groups of --tp {}, nor groups into nodes: "
      "some lie in one node more than the times assume\n",
      counted(node, "device"), tensor);
}

}  // namespace

void warn_of_unused_model_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps) {
  const PredictOptions& options = inputs.flags();
  const Parallelism& parallel = options.model.parallel;
  const ModelOnDevices& on = inputs.files().model.value();
  const bool has_experts = on.model.experts.has_value();
  const bool has_layout = !options.shape.layout.empty();
  const bool is_balanced = !has_layout && !parallel.ends.any();
  const char* const of_layout = has_layout ? "--layout gives every stage its layers"
                                           : "Megatron-LM's rule gives every rank its layers";
  const GivenFlag flags[] = {
      {"--no-sequence-parallel", !parallel.sequence_parallel, parallel.tensor > 1,
       "there is one tensor rank; add --tp"},
      {"--etp", parallel.expert_tensor.has_value(), has_experts, "the model has no experts"},
      {"--recompute-modules", !parallel.modules.empty(), has_any(on.model, parallel.modules),
       "the model has none of them"},
      {"--embedding-layers", parallel.embedding_layers.has_value(), is_balanced, of_layout},
      {"--head-layers", parallel.head_layers.has_value(), is_balanced, of_layout},
  };
  report_unused(flags);
  note_assumed_defaults(inputs, on, steps);
  report_sharding(options, on, steps);
  report_assumptions(on, steps);
  note_gathered_weights(options, on, steps);
  note_divided_groups(on);
  note_assumed_expert_ranks(on);
  if (options.shape.moe_overlap) note_exposed_experts(options.model.parts.has_value(), has_experts);
}

}  // namespace bubblescope::tools
