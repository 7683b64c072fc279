// Takes means per stage and kind, and splits backwards.
#include "sim/analysis/fit_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "sim/analysis/fit_messages.h"
#include "sim/analysis/fit_microbatches.h"
#include "sim/analysis/mean.h"
#include "sim/analysis/pauses.h"
#include "sim/ir/error.h"
#include "sim/ir/quantile.h"
#include "sim/model/stage_kinds.h"

namespace bubblescope::inline sim {

namespace {

/// Returns the mean in whole nanoseconds; nullopt where nothing was measured.
std::optional<Nanos> time_of(const Mean& mean) {
  if (mean.count == 0) return {};
  return std::llround(mean.value());
}

/// The mean times of one stage by kind.
using StageMeans = std::array<Mean, kComputeKinds>;

const Mean& mean_of(const StageMeans& means, OpKind kind) {
  return means[static_cast<std::size_t>(kind)];
}

std::vector<StageMeans> find_means(std::span<const OpSample> samples,
                                   const std::vector<bool>& is_left_out, std::int32_t stages,
                                   std::optional<std::size_t> replica) {
  std::vector<StageMeans> means(static_cast<std::size_t>(stages));
  for (std::size_t at = 0; at < samples.size(); ++at) {
    const OpSample& sample = samples[at];
    if (is_left_out[at] || (replica && sample.replica != *replica)) continue;
    means[static_cast<std::size_t>(sample.stage)][static_cast<std::size_t>(sample.kind)].add(
        sample.time);
  }
  return means;
}

std::vector<StageEntry> make_entries(const std::vector<StageMeans>& means) {
  std::vector<StageEntry> entries;
  for (std::size_t stage = 0; stage < means.size(); ++stage) {
    const std::optional<Nanos> forward = time_of(mean_of(means[stage], OpKind::kForward));
    if (!forward)
      throw Error("the trace has no forward of stage " + std::to_string(stage) +
                  ", so its costs cannot be fitted; record whole steps");
    StageEntry& entry = entries.emplace_back();
    entry.forward = *forward;
    entry.backward = time_of(mean_of(means[stage], OpKind::kBackward));
    entry.recompute = time_of(mean_of(means[stage], OpKind::kRecompute));
    const auto input_grad = time_of(mean_of(means[stage], OpKind::kInputGrad));
    const auto weight_grad = time_of(mean_of(means[stage], OpKind::kWeightGrad));
    if (input_grad || weight_grad) {
      entry.input_grad = input_grad.value_or(0);
      entry.weight_grad = weight_grad.value_or(0);
    }
  }
  return entries;
}

/// Sets the mean times of what stages do once per update, and of the norm over all ranks.
void fit_updates(std::span<const ReplicatedStep> steps, CostTable& table) {
  std::vector<std::map<OpKind, Mean>> of_stage(table.stages.size());
  Mean norm;
  for (const ReplicatedStep& replicas : steps)
    for (const ObservedStep& step : replicas)
      for (InstructionId id = 0; id < step.program.size(); ++id) {
        const Instruction& one = step.program.instructions[id];
        if (one.role != Role::kWork) continue;
        const auto time = static_cast<double>(step.duration_of(id));
        const std::size_t stage = static_cast<std::size_t>(one.op.stage) % of_stage.size();
        if (one.op.kind == OpKind::kNorm)
          norm.add(time);
        else if (one.op.kind >= OpKind::kUnshard)
          of_stage[stage][one.op.kind].add(time);
      }
  table.norm = time_of(norm).value_or(0);
  const auto set = [&](std::vector<StageEntry>& stages) {
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      std::map<OpKind, Mean>& means = of_stage[stage];
      stages[stage].update.optimizer = time_of(means[OpKind::kOptimizer]).value_or(0);
      stages[stage].update.reduce_grad = time_of(means[OpKind::kReduceGrad]).value_or(0);
      stages[stage].update.unshard = time_of(means[OpKind::kUnshard]).value_or(0);
    }
  };
  set(table.stages);
  for (std::vector<StageEntry>& stages : table.replicas) set(stages);
}

/// The backward's time per forward; 0 if there is no backward.
double backward_ratio(const StageEntry& stage) {
  return static_cast<double>(stage.backward.value_or(0)) /
         static_cast<double>(std::max<Nanos>(1, stage.forward));
}

/// Whether the first stage computes no input gradient, because nothing before it needs one: then
/// its backward is nearer to the others' weight gradients than to their backwards.
bool first_lacks_input_grad(std::span<const StageEntry> stages, double input_part) {
  std::vector<double> others;
  for (std::size_t stage = 1; stage < stages.size(); ++stage)
    others.push_back(backward_ratio(stages[stage]));
  if (others.empty() || !stages.front().backward) return false;
  const double usual = quantile(std::move(others), 50);
  const double own = backward_ratio(stages.front());
  return std::abs(own - (1 - input_part) * usual) < std::abs(own - usual);
}

/// The input gradient's mean fraction of a backward over the stages that split it.
std::optional<double> measured_split(std::span<const StageEntry> stages) {
  double input = 0;
  double both = 0;
  for (std::size_t stage = stages.size() > 1 ? 1 : 0; stage < stages.size(); ++stage) {
    input += static_cast<double>(stages[stage].input_grad.value_or(0));
    both += static_cast<double>(stages[stage].input_grad.value_or(0) +
                                stages[stage].weight_grad.value_or(0));
  }
  if (both == 0) return {};
  return input / both;
}

/// Splits the backwards of stages that were seen whole only. Returns whether any was split.
bool split_backwards(std::span<StageEntry> stages, double input_part, bool first_has_none) {
  bool any = false;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    StageEntry& entry = stages[stage];
    if (entry.input_grad || !entry.backward) continue;
    const double part = stage == 0 && first_has_none ? 0 : input_part;
    entry.input_grad = std::llround(static_cast<double>(*entry.backward) * part);
    entry.weight_grad = *entry.backward - *entry.input_grad;
    any = true;
  }
  return any;
}

/// Returns for every kind of op the ratio of a stage's time to that of another stage, minus 1.
std::vector<double> find_excess(const StageEntry& stage, const StageEntry& other) {
  std::vector<double> excess;
  const auto add = [&](std::optional<Nanos> own, std::optional<Nanos> others) {
    if (own && others && *others > 0)
      excess.push_back(static_cast<double>(*own) / static_cast<double>(*others) - 1);
  };
  add(stage.forward, std::max<Nanos>(1, other.forward));
  add(stage.backward, other.backward);
  add(stage.input_grad, other.input_grad);
  add(stage.weight_grad, other.weight_grad);
  return excess;
}

/// Guesses how the first and the last stage differ from the others: by heavier layers where they
/// take a little longer by the same factor in every kind of op, and else by an embedding or a head.
/// An end that takes shorter has fewer layers. The first stage may lack its input gradients.
Ends guess_ends(std::span<const StageEntry> chain) {
  constexpr double kNoticed = 0.02;
  constexpr double kAlike = 0.1;         // as a fraction of the smallest excess
  constexpr double kMaxOfLayers = 0.45;  // a larger excess is not due to other layers
  const std::vector<StageEntry> kinds = make_stage_kinds({chain.begin(), chain.end()});
  if (kinds.empty()) return Ends::kMoreLayers;
  bool any = false;
  bool alike = true;
  bool longer = false;
  for (const StageEntry* end : {&kinds.front(), &kinds.back()}) {
    const std::vector<double> excess = find_excess(*end, kinds[1]);
    const auto [least, most] = std::minmax_element(excess.begin(), excess.end());
    const double largest = end == &kinds.front() ? excess.front() : *most;
    const double noticed = end == &kinds.front() ? std::abs(excess.front())
                                                 : std::max(std::abs(*least), std::abs(*most));
    if (noticed < kNoticed) continue;
    any = true;
    longer = longer || largest >= kNoticed;
    alike = alike && *most - *least <= kAlike * std::abs(*least) && noticed < kMaxOfLayers;
  }
  if (any && alike && longer) return Ends::kHeavierLayers;
  return longer ? Ends::kExtraWork : Ends::kMoreLayers;
}

/// Splits the backwards of shards of the output layer, which follow the chain of stages. How stages
/// split theirs says nothing of them.
void split_shards(CostTable& table, const FitOptions& options, std::size_t chain) {
  if (!options.split_backward) return;
  split_backwards(std::span(table.stages).subspan(chain), *options.split_backward, false);
  for (std::vector<StageEntry>& stages : table.replicas)
    split_backwards(std::span(stages).subspan(chain), *options.split_backward, false);
}

/// Splits backwards where that is needed or asked for, in all replicas alike.
void split_table(FittedCosts& fitted, const FitOptions& options, std::size_t chain) {
  CostTable& table = fitted.table;
  split_shards(table, options, chain);
  const auto chain_of = [chain](std::vector<StageEntry>& stages) {
    return std::span(stages).first(chain);
  };
  const std::optional<double> measured = measured_split(chain_of(table.stages));
  const std::optional<double> part = measured ? measured : options.split_backward;
  if (!part) return;
  if (measured && options.split_backward)
    fitted.notes.push_back(
        "the steps have split backwards: their measured halves count, also for stages that never "
        "split theirs");
  const bool first_has_none = first_lacks_input_grad(chain_of(table.stages), *part);
  const bool any = split_backwards(chain_of(table.stages), *part, first_has_none);
  for (std::vector<StageEntry>& stages : table.replicas)
    split_backwards(chain_of(stages), *part, first_lacks_input_grad(chain_of(stages), *part));
  if (any && first_has_none && !measured)
    fitted.notes.push_back(
        "the backward of stage 0 is as short as a weight gradient: it counts as one, without an "
        "input gradient");
}

/// In any schedule, ops that are launched late start this much later than they could.
void fit_gaps(std::span<const ReplicatedStep> steps, CostTable& table) {
  const LaunchGaps gaps = find_launch_gaps(steps);
  table.op_gap = std::llround(gaps.behind_ops);
  const Nanos behind_messages = std::llround(gaps.behind_messages);
  table.message.latency += behind_messages;
  for (LinkEntry& link : table.links) link.transfer.latency += behind_messages;
}

/// The steps after the last lasting change of speed.
std::span<const ReplicatedStep> choose_steps(std::span<const ReplicatedStep> steps,
                                             FittedCosts& fitted, std::int32_t stages) {
  while (const std::optional<Drift> drift = find_drift(collect_samples(steps, stages))) {
    steps = steps.subspan(drift->first_step);
    fitted.first_step += drift->first_step;
    fitted.drift = drift;
  }
  return steps;
}

}  // namespace

FittedCosts fit_costs(std::span<const ReplicatedStep> steps, const FitOptions& options) {
  FittedCosts fitted;
  CostTable& table = fitted.table;
  steps = choose_steps(steps, fitted, options.stages);
  const std::vector<OpSample> samples = collect_samples(steps, options.stages);
  const FittedNoise noise = fit_noise(samples);
  const auto entries = [&](std::optional<std::size_t> replica) {
    return make_entries(find_means(samples, noise.is_straggler, options.stages, replica));
  };
  table.stages = entries({});
  const std::size_t replicas = steps.front().size();
  for (std::size_t replica = 0; replicas > 1 && replica < replicas; ++replica)
    table.replicas.push_back(entries(replica));
  const auto chain =
      static_cast<std::size_t>(std::min(options.stages, steps.front().front().chain_stages));
  const bool has_shards = chain < table.stages.size();
  split_table(fitted, options, chain);
  fit_updates(steps, table);
  table.noise = noise.noise;
  if (options.per_microbatch) {
    MicrobatchCosts costs = fit_microbatches(steps, table.stages);
    table.lists = std::move(costs.lists);
    table.noise = costs.noise;
  }
  if (!table.noise->is_random()) table.noise.reset();
  if (std::optional<std::string> remark = fit_messages(steps, table))
    fitted.notes.push_back(*std::move(remark));
  fit_gaps(steps, table);
  table.divisible = !options.per_microbatch && !has_shards;
  if (!options.per_microbatch) table.ends = guess_ends(std::span(table.stages).first(chain));
  return fitted;
}

}  // namespace bubblescope::inline sim
