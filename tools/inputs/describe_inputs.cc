// Words the costs and the conditions of a prediction.
#include "tools/inputs/describe_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/ir/counted.h"
#include "sim/model/megatron_counts.h"
#include "tools/flags/arrival_options.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::tools {

namespace {

std::string uniform_text(const UniformCost& cost) {
  const char* per = cost.per == UniformCost::Per::kRank    ? "rank"
                    : cost.per == UniformCost::Per::kChunk ? "chunk"
                                                           : "slice";
  std::string text = fmt::format("f {}, b {}, i {}, w {} per {}, p2p {}", to_text(cost.forward),
                                 to_text(cost.full_backward()), to_text(cost.input_grad),
                                 to_text(cost.weight_grad), per, to_text(cost.message));
  if (cost.output_layer > 0) text += ", output layer " + to_text(cost.output_layer);
  return text;
}

std::string ends_text(const UnevenEnds& ends) {
  std::string text;
  if (ends.first) text += fmt::format(", {} on the first rank", counted(*ends.first, "layer"));
  if (ends.last) text += fmt::format(", {} on the last rank", counted(*ends.last, "layer"));
  if (ends.counts_embedding) text += ", the embedding counted as a layer";
  if (ends.counts_loss) text += ", the loss counted as a layer";
  return text;
}

/// Returns the other choices that decide a model's times, as far as they are unusual, so that
/// different reports have different texts.
std::string unusual_text(const ModelOnDevices& on) {
  std::string text;
  if (on.matrices == MatrixType::kFp8) text += ", GEMMs in fp8";
  if (on.runtime != ModelOnDevices{}.runtime) text += ", runtime " + on.runtime;
  if (!on.parallel.flash_attention) text += ", attention with saved scores";
  if (!on.assumptions.causal) text += ", attention that is not causal";
  if (on.assumptions.slowdown != 1) text += fmt::format(", slowdown {:g}", on.assumptions.slowdown);
  if (!on.replaced.empty()) text += fmt::format(", with {}", fmt::join(on.replaced, ", "));
  return text;
}

}  // namespace

std::map<std::string, std::string> list_conditions(const PredictOptions& flags) {
  std::map<std::string, std::string> conditions;
  const auto add = [&](const char* field, const std::string& value) {
    std::string& all = conditions[field];
    all += (all.empty() ? "" : " ") + value;
  };
  for (const Injection& injection : flags.injections) add("inject", to_string(injection));
  for (const SlowRank& slow : flags.noise.slow_ranks)
    add("slow", fmt::format("rank={},factor={:g}", slow.rank, slow.factor));
  if (!flags.arrivals_file.empty()) add("arrivals", flags.arrivals_file);
  if (flags.policy) add("policy", policy_text(*flags.policy));
  return conditions;
}

std::string costs_text(const Models& models, const PredictOptions& flags) {
  const LayerLayout& layout = flags.shape.layout;
  std::string text = models.placed             ? describe_model(models.placed->on)
                     : flags.cost.file.empty() ? uniform_text(flags.cost.uniform)
                                               : flags.cost.file;
  if (models.placed)
    text += unusual_text(models.placed->on) + ends_text(models.placed->on.parallel.ends);
  if (!layout.empty()) text += ", layout " + traces::to_string(layout);
  if (flags.cost.network) text += ", network " + to_string(*flags.cost.network);
  return text;
}

}  // namespace bubblescope::tools
