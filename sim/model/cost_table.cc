// Derives the models of one schedule from a cost table.
#include "sim/model/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/model/cost_lists.h"
#include "sim/model/cost_table_checks.h"
#include "sim/model/traffic.h"
#include "sim/model/transfer_limit.h"

namespace bubblescope::inline sim {

namespace {

/// The bytes that a forward saves: everything, or only what the recomputation needs.
Bytes saved_bytes(const StageEntry& entry, Recompute recompute, const SavedFractions& saved) {
  const Bytes all = entry.activation_bytes ? entry.activation_bytes->forward : 0;
  const Bytes share = scale(all, saved.of(recompute));
  switch (recompute) {
    case Recompute::kNone: return all;
    case Recompute::kSelective: return entry.selective_checkpoint.value_or(share);
    case Recompute::kFull: return entry.checkpoint.value_or(share);
  }
  return all;
}

/// A bit takes 1 / bandwidth_gbps nanoseconds.
Nanos copy_time(const CopyEntry& copy, Bytes bytes) {
  if (!copy.bandwidth_gbps) return copy.latency;
  const double transfer = std::ceil(8.0 * static_cast<double>(bytes) / *copy.bandwidth_gbps);
  if (transfer > kMaxTransferNanos)
    throw Error("/copy/bandwidth_gbps: a copy takes longer than 10 days; correct it, or the bytes");
  return copy.latency + static_cast<Nanos>(transfer);
}

/// Properties of a stage that depend on the schedule, not on its entry.
struct StageUse {
  Recompute recompute = Recompute::kFull;
  bool recomputes = false;
  bool to_rank = false;  ///< its activations are offloaded to another rank
  CopyEntry copy;
  SavedFractions saved;
};

StageUse use_of(const CostTable& table, const Schedule& schedule, std::int32_t stage) {
  StageUse use;
  use.recompute = schedule.recompute(stage);
  use.to_rank = offloads_to_rank(schedule, schedule.rank_of_stage[static_cast<std::size_t>(stage)]);
  use.copy = use.to_rank ? table.copy_to_rank.value_or(table.copy) : table.copy;
  return use;
}

struct CopyTimes {
  Nanos evict = 0;
  Nanos load = 0;
};

CopyTimes copy_times(const StageEntry& entry, const StageUse& use) {
  const Bytes moved =
      saved_bytes(entry, use.recomputes ? use.recompute : Recompute::kNone, use.saved);
  const Nanos evict = entry.evict ? *entry.evict : copy_time(use.copy, moved);
  const Nanos load = entry.load.value_or(evict);
  if (!use.to_rank) return {evict, load};
  const Nanos load_unless_given = entry.evict_to_rank ? *entry.evict_to_rank : load;
  return {entry.evict_to_rank.value_or(evict), entry.load_from_rank.value_or(load_unless_given)};
}

StageCost slice_of(const StageEntry& entry, const StageUse& use, std::int32_t slices,
                   std::int32_t slice) {
  StageCost cost;
  cost.forward = part_of(entry.forward, slices, slice);
  cost.backward = part_of(full_backward(entry).value_or(0), slices, slice);
  cost.input_grad = part_of(entry.input_grad.value_or(0), slices, slice);
  cost.weight_grad = part_of(entry.weight_grad.value_or(0), slices, slice);
  const bool selective = use.recompute == Recompute::kSelective;
  const Nanos again =
      selective ? entry.selective_recompute.value_or(0) : entry.recompute.value_or(entry.forward);
  cost.recompute = part_of(again, slices, slice);
  const CopyTimes copies = copy_times(entry, use);
  cost.evict = part_of(copies.evict, slices, slice);
  cost.load = part_of(copies.load, slices, slice);
  if (entry.overlapped_pair) cost.overlapped_pair = part_of(*entry.overlapped_pair, slices, slice);
  return cost;
}

/// Returns the mean of every `step`-th cost from `first` on.
StageCost mean_of(const std::vector<StageCost>& costs, std::size_t first, std::size_t step) {
  StageCost mean = costs[first];
  if (costs.size() <= step) return mean;
  const auto average = [&](auto time_of) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t at = first; at < costs.size(); at += step, ++count)
      sum += static_cast<double>(time_of(costs[at]));
    return std::llround(sum / static_cast<double>(count));
  };
  for (const auto member :
       {&StageCost::forward, &StageCost::backward, &StageCost::input_grad, &StageCost::weight_grad,
        &StageCost::recompute, &StageCost::evict, &StageCost::load})
    mean.*member = average([&](const StageCost& cost) { return cost.*member; });
  if (mean.overlapped_pair)  // all micro-batches have one, or none has
    mean.overlapped_pair = average([](const StageCost& cost) { return *cost.overlapped_pair; });
  return mean;
}

/// Appends the costs of a stage: one for each slice, and one for each micro-batch where they
/// differ.
void add_stage(CostModel& model, const CostTable& table, const Schedule& schedule,
               std::int32_t stage, const StageUse& use) {
  const std::vector<CostList>& lists = lists_of(table, stage);
  const std::int32_t microbatches = varies_by_microbatch(lists) ? schedule.shape.microbatches : 1;
  const std::int32_t slices = model.slices;
  std::vector<StageCost> costs;
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    const StageEntry whole = entry_of_sequence(table, stage, microbatch);
    for (std::int32_t slice = 0; slice < slices; ++slice) {
      if (!varies_by_slice(lists)) {
        costs.push_back(slice_of(whole, use, slices, slice));
        continue;
      }
      StageUse part = use;
      part.copy.latency = part_of(use.copy.latency, slices, slice);
      StageCost& cost = costs.emplace_back(
          slice_of(entry_of_slice(table, stage, microbatch, slices, slice), part, 1, 0));
      if (copies_vary_by_slice(lists)) continue;
      const CopyTimes copies = copy_times(whole, use);
      cost.evict = part_of(copies.evict, slices, slice);
      cost.load = part_of(copies.load, slices, slice);
    }
  }
  for (std::int32_t slice = 0; slice < slices; ++slice)
    model.stages.push_back(
        mean_of(costs, static_cast<std::size_t>(slice), static_cast<std::size_t>(slices)));
  if (has_lists(table)) model.by_microbatch.add_stage(costs);
}

/// Runs the parts of ops, whose time is that of the op.
void add_parts(CostModel& model, const CostTable& table, const Schedule& schedule) {
  try {
    model.parts = run_all_parts(table.parts, schedule);
  } catch (const Error& error) {
    throw Error(table.file + ": " + error.what());
  }
  for (const auto& [key, run] : model.parts.run_of) {
    if (key.second_stage >= 0) continue;
    StageCost& cost =
        model.stages[static_cast<std::size_t>(std::int64_t{key.stage} * model.slices + key.slice)];
    const Nanos time = model.parts.runs[run].time;
    if (key.kind == OpKind::kForward) cost.forward = time;
    if (key.kind == OpKind::kBackward) cost.backward = time;
    if (key.kind == OpKind::kInputGrad) cost.input_grad = time;
    if (key.kind == OpKind::kWeightGrad) cost.weight_grad = time;
    if (key.kind == OpKind::kRecompute) cost.recompute = time;
  }
}

/// One slice's share of the memory deltas; rounded so that they still sum to 0.
MemoryDelta slice_of(const MemoryDelta& stage, std::int32_t slices) {
  const std::int64_t kept = stage.forward / slices;
  const std::int64_t released = -stage.input_grad / slices;
  return {kept, -released, released - kept};
}

}  // namespace

std::string StagePlaces::of_stage(std::size_t stage) const {
  return objects.empty() ? "" : fmt::format("{}/{}: ", objects, stage);
}

std::string StagePlaces::of_activations(std::size_t stage) const {
  if (activations_in_root || objects.empty()) return "/activation_bytes";
  return fmt::format("{}/{}/activation_bytes", objects, stage);
}

bool offloads_to_rank(const Schedule& schedule, std::int32_t rank) {
  const auto at = static_cast<std::size_t>(rank);
  return !schedule.offload_target_of_rank.empty() && schedule.offload_target_of_rank[at] != rank;
}

bool shortens_pairs(const CostTable& table) {
  return std::any_of(table.stages.begin(), table.stages.end(), [](const StageEntry& stage) {
    return stage.overlapped_pair &&
           *stage.overlapped_pair < stage.forward + full_backward(stage).value_or(0);
  });
}

Nanos CostTable::late_start(std::size_t replica) const {
  return late_starts.empty() ? 0 : late_starts[replica];
}

CostModel make_cost_model(const CostTable& table, const Schedule& schedule,
                          const SavedFractions& saved) {
  expect_stages(table, schedule);
  const std::vector<OpKindSet> kinds = kinds_of_stages(table, schedule);
  expect_durations(table, schedule, kinds);
  expect_list_lengths(table, schedule);
  CostModel model;
  model.slices = schedule.shape.slices;
  if (has_lists(table)) model.by_microbatch = CostTensor<StageCost>(model.slices);
  const bool recomputes = std::any_of(kinds.begin(), kinds.end(), [](const OpKindSet& entry) {
    return runs_kind(entry, OpKind::kRecompute);
  });
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    StageUse use = use_of(table, schedule, stage);
    use.recomputes = recomputes;
    use.saved = saved;
    add_stage(model, table, schedule, stage, use);
    model.updates.push_back(entry.update);
  }
  model.norm = table.norm;
  model.op_gap = table.op_gap;
  add_parts(model, table, schedule);
  set_message_times(model, table, schedule);
  const std::optional<Cluster> placed = make_cluster(table, schedule);
  return placed ? with_uncontended_messages(std::move(model), *placed, schedule) : model;
}

std::optional<Cluster> make_cluster(const CostTable& table, const Schedule& schedule) {
  if (!table.cluster) return {};
  Cluster cluster =
      place_ranks(*table.cluster, table.message.speed(), table.message.bytes, schedule.shape.ranks);
  for (const LinkEntry& link : table.links)
    cluster.links.push_back({link.from, link.to, link.transfer.speed(), link.transfer.bytes});
  cluster.sizes = make_message_sizes(table, schedule, cluster);
  return cluster;
}

namespace {

/// Throws Error where a micro-batch releases or recomputes more than it saves.
void expect_parts_of_saved(const CostTable& table, const StageEntry& entry, const Op& op) {
  const Bytes saved = entry.activation_bytes->forward;
  const auto expect = [&](const char* key, Bytes part) {
    if (part > saved)
      throw Error(fmt::format(
          "{}: {}: {} of micro-batch {} is {}, more than the {} that it saves; correct one of them",
          table.file, table.places.of_activations(static_cast<std::size_t>(op.stage)), key,
          op.microbatch, counted(part, "byte"), saved));
  };
  expect("released_by_input_grad", -entry.activation_bytes->input_grad);
  expect("checkpoint", entry.checkpoint.value_or(0));
  expect("selective_checkpoint", entry.selective_checkpoint.value_or(0));
}

/// Appends the bytes of a stage: those of its slices, and of each micro-batch where they differ.
void add_stage(MemoryModel& model, const CostTable& table, const Schedule& schedule,
               const SavedFractions& saved, std::int32_t stage) {
  const std::vector<CostList>& lists = lists_of(table, stage);
  const std::int32_t slices = schedule.shape.slices;
  const std::int32_t microbatches = varies_by_microbatch(lists) ? schedule.shape.microbatches : 1;
  if (model.by_microbatch.empty()) model.by_microbatch = CostTensor<SliceBytes>(slices);
  std::vector<SliceBytes> bytes;
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch)
    for (std::int32_t slice = 0; slice < slices; ++slice) {
      const StageEntry entry = entry_of_slice(table, stage, microbatch, slices, slice);
      expect_parts_of_saved(table, entry, {stage, microbatch, static_cast<std::int16_t>(slice)});
      bytes.push_back(
          {*entry.activation_bytes, saved_bytes(entry, schedule.recompute(stage), saved)});
    }
  model.by_microbatch.add_stage(bytes);
}

/// Returns the weight bytes of all stages; throws Error where only some stages give them.
std::vector<Bytes> weight_bytes(const CostTable& table, const Schedule& schedule) {
  std::vector<Bytes> bytes;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    if (entry.weight_bytes) bytes.push_back(*entry.weight_bytes);
  }
  if (bytes.empty() || bytes.size() == static_cast<std::size_t>(schedule.stages())) return bytes;
  throw Error(
      fmt::format("{}: {}: some entries have 'weight_bytes' and some have not; give them for "
                  "all stages or for none",
                  table.file, table.places.objects));
}

/// Whether slices save equal bytes.
bool are_bytes_divisible(const CostTable& table, std::int32_t slices) {
  const auto is_divisible = [slices](const std::optional<Bytes>& bytes) {
    return bytes.value_or(0) % slices == 0;
  };
  return std::all_of(table.stages.begin(), table.stages.end(), [&](const StageEntry& entry) {
    if (!entry.activation_bytes) return true;
    return is_divisible(entry.activation_bytes->forward) &&
           is_divisible(entry.activation_bytes->input_grad) && is_divisible(entry.checkpoint) &&
           is_divisible(entry.selective_checkpoint);
  });
}

}  // namespace

MemoryModel make_memory_model(const CostTable& table, const Schedule& schedule,
                              const SavedFractions& saved) {
  expect_stages(table, schedule);
  expect_list_lengths(table, schedule);
  MemoryModel model;
  const bool differs = has_lists(table) || !are_bytes_divisible(table, schedule.shape.slices);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    if (!entry.activation_bytes) continue;
    model.activation_bytes.push_back(slice_of(*entry.activation_bytes, schedule.shape.slices));
    model.checkpoint_bytes.push_back(saved_bytes(entry, schedule.recompute(stage), saved) /
                                     schedule.shape.slices);
    if (differs) add_stage(model, table, schedule, saved, stage);
  }
  const auto given = static_cast<std::int32_t>(model.activation_bytes.size());
  if (given != 0 && given != schedule.stages())
    throw Error(
        fmt::format("{}: {}: some entries have 'activation_bytes' and some have not; "
                    "give them for all stages or for none",
                    table.file, table.places.objects));
  model.weight_bytes = weight_bytes(table, schedule);
  model.static_bytes = table.static_bytes;
  if (!table.static_bytes.empty() &&
      table.static_bytes.size() != static_cast<std::size_t>(schedule.shape.ranks))
    throw Error(fmt::format("{}: /memory/static_bytes: has {} for {}; give one per rank",
                            table.file, counted(std::ssize(table.static_bytes), "entry"),
                            counted(schedule.shape.ranks, "rank")));
  return model;
}

}  // namespace bubblescope::inline sim
