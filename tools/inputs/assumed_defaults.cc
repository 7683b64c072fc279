// Compares steps with the defaults of Megatron-LM.
#include "tools/inputs/assumed_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/ir/bytes_text.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/step_end.h"
#include "tools/flags/words.h"
#include "tools/inputs/model_headline.h"
#include "tools/inputs/unused_model_flags.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// Lists "--overlap-grad-reduce", "--overlap-param-gather" or both: those that hide something in a
/// step.
std::string list_overlaps(const PredictInputs& inputs, const ModelOnDevices& on,
                          std::span<const PredictedOps> steps) {
  const StepEnd& end = inputs.flags().cost.end;
  const bool is_beside = std::any_of(steps.begin(), steps.end(), [&](const PredictedOps& step) {
    return choose_model_update(*step.schedule, end).reduction == GradReduction::kOverlap;
  });
  if (!is_beside || find_same_reductions(on, steps) != nullptr) return {};
  const UnstatedDefaults& unstated = inputs.flags().model.unstated;
  const std::int32_t zero_stage = on.parallel.zero_stage;
  std::vector<std::string> overlaps;
  if (unstated.reduction && zero_stage < 2 && !reduce_by_themselves(steps))
    overlaps.emplace_back("--overlap-grad-reduce");
  if (unstated.gather && zero_stage > 0) overlaps.emplace_back("--overlap-param-gather");
  return join(overlaps, " and ");
}

/// Says whether all ranks fit, or what the fullest one lacks.
std::string describe_fit(const ModelFit& fit) {
  return fit.fits() ? "all ranks fit"
                    : fmt::format("rank {} lacks {}", fit.rank, format_bytes(-fit.head_room));
}

}  // namespace

void note_assumed_defaults(const PredictInputs& inputs, const ModelOnDevices& on,
                           std::span<const PredictedOps> steps) {
  const UnstatedDefaults& unstated = inputs.flags().model.unstated;
  const Parallelism& parallel = on.parallel;
  const bool has_copies = parallel.copies() > 1;
  std::vector<std::string> assumed;
  const auto add = [&](const std::string& theirs, const std::string& off) {
    assumed.push_back(theirs + " (off with " + off + ")");
  };
  if (unstated.precision) assumed.emplace_back("--bf16");
  if (unstated.sequence_parallel && parallel.tensor > 1 && parallel.sequence_parallel)
    add("--sequence-parallel", "--no-sequence-parallel");
  if (unstated.sharding && has_copies && parallel.zero_stage > 0)
    add("--use-distributed-optimizer", "--zero 0");
  const std::string overlaps = list_overlaps(inputs, on, steps);
  if (!overlaps.empty()) add(overlaps, "--grad-reduction serial");
  if (assumed.empty()) return;
  print_message("bubblescope: assumed, though Megatron-LM has {} off unless given: {}\n",
                assumed.size() == 1 ? "it" : "them", join(assumed, ", "));
}

std::string describe_megatron_gradients(Gradients theirs) {
  if (theirs == Gradients::kFp32)
    return fmt::format(
        "Megatron-LM has 32-bit gradients unless {} is given (here --gradients fp32)",
        "--grad-reduce-in-bf16");
  return fmt::format(
      "Megatron-LM has 16-bit gradients with {} unless {} is given (here --gradients bf16)",
      "--fp16", "--accumulate-allreduce-grads-in-fp32");
}

std::string describe_assumed_gradients(const UnstatedDefaults& unstated, const PlacedModel& placed,
                                       const BubbleReport& report) {
  const Gradients ours = placed.on.parallel.gradients;
  if (!unstated.gradients || *unstated.gradients == ours || !placed.on.trains) return {};
  return fmt::format("predicted with {}; {}, with which {}", describe_gradients(ours),
                     describe_megatron_gradients(*unstated.gradients),
                     describe_fit(find_fit_with(*unstated.gradients, placed, report)));
}

}  // namespace bubblescope::tools
