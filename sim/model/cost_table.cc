// Derives the models of one schedule from a cost table.
#include "sim/model/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/ir/error.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

namespace {

/// A schedule that is built for its costs has no name yet.
std::string_view name_of(const Schedule& schedule) {
  return schedule.name.empty() ? "the schedule" : std::string_view(schedule.name);
}

/// The file's stages may cover all pipelines or only one; then its replicas cost the same.
void expect_stages(const CostTable& table, const Schedule& schedule) {
  const auto given = static_cast<std::int32_t>(table.stages.size());
  if (given == schedule.stages() || given == schedule.stages_per_pipeline()) return;
  throw Error(
      fmt::format("{}: /stages: has {} entries, but {} has {} stages ({} rank(s) x {} "
                  "chunk(s)); give one entry per stage",
                  table.file, given, name_of(schedule), schedule.stages_per_pipeline(),
                  schedule.shape.ranks, schedule.shape.chunks));
}

/// Finds which kinds of ops a schedule has.
std::array<bool, kOpKinds> find_kinds(const Schedule& schedule) {
  std::array<bool, kOpKinds> has{};
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops) has[static_cast<std::size_t>(op.kind)] = true;
  return has;
}

void expect_durations(const CostTable& table, const Schedule& schedule) {
  const std::array<bool, kOpKinds> has = find_kinds(schedule);
  const bool full = has[static_cast<std::size_t>(OpKind::kBackward)];
  const bool split = has[static_cast<std::size_t>(OpKind::kInputGrad)];
  const bool moves = has[static_cast<std::size_t>(OpKind::kEvict)];
  for (std::size_t stage = 0; stage < table.stages.size(); ++stage) {
    const StageEntry& entry = table.stages[stage];
    if (split && !entry.input_grad)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'input_grad' and 'weight_grad', but {} splits "
                      "the backward; add them",
                      table.file, stage, name_of(schedule)));
    if (full && !entry.backward && !entry.input_grad)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'backward'; add it, or 'input_grad' and "
                      "'weight_grad'",
                      table.file, stage));
    const bool by_bandwidth = table.copy.bandwidth_gbps.has_value() && !entry.evict;
    if (moves && by_bandwidth && !entry.activation_bytes)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'activation_bytes', which /copy/bandwidth_gbps needs; "
                      "add it, or give 'evict' and 'load'",
                      table.file, stage));
  }
  for (std::size_t stage = 0; stage < schedule.recompute_of_stage.size(); ++stage)
    if (schedule.recompute_of_stage[stage] == Recompute::kSelective &&
        !table.stages[stage % table.stages.size()].selective_recompute)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'selective_recompute', but {} recomputes attention "
                      "there; add it",
                      table.file, stage % table.stages.size(), schedule.name));
}

/// The bytes that a forward saves: everything, or only the input of the recomputation.
Bytes saved_bytes(const StageEntry& entry, Recompute recompute) {
  const Bytes all = entry.activation_bytes ? entry.activation_bytes->forward : 0;
  switch (recompute) {
    case Recompute::kNone: return all;
    case Recompute::kSelective: {
      const SavedFractions shares;
      return entry.selective_checkpoint.value_or(all * shares.selective / kWhole);
    }
    case Recompute::kFull: return entry.checkpoint.value_or(0);
  }
  return all;
}

/// A bit takes 1 / bandwidth_gbps nanoseconds.
Nanos copy_time(const CopyEntry& copy, Bytes bytes) {
  constexpr double kLongest = 1e15;
  if (!copy.bandwidth_gbps) return copy.latency;
  const double transfer = std::ceil(8.0 * static_cast<double>(bytes) / *copy.bandwidth_gbps);
  if (transfer > kLongest)
    throw Error("/copy/bandwidth_gbps: a copy takes longer than 10 days; correct it, or the bytes");
  return copy.latency + static_cast<Nanos>(transfer);
}

/// Properties of a stage that depend on the schedule, not on its entry.
struct StageUse {
  Recompute recompute = Recompute::kFull;
  bool recomputes = false;
  bool to_rank = false;  ///< its activations are offloaded to another rank
  CopyEntry copy;
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
  const Bytes moved = saved_bytes(entry, use.recomputes ? use.recompute : Recompute::kNone);
  const Nanos evict = entry.evict ? *entry.evict : copy_time(use.copy, moved);
  const Nanos load = entry.load.value_or(evict);
  if (!use.to_rank) return {evict, load};
  const Nanos load_unless_given = entry.evict_to_rank ? *entry.evict_to_rank : load;
  return {entry.evict_to_rank.value_or(evict), entry.load_from_rank.value_or(load_unless_given)};
}

StageCost slice_of(const StageEntry& entry, const StageUse& use, std::int32_t slices,
                   std::int32_t slice) {
  const Nanos input_grad = entry.input_grad.value_or(0);
  const Nanos weight_grad = entry.weight_grad.value_or(0);
  StageCost cost;
  cost.forward = part_of(entry.forward, slices, slice);
  cost.backward = part_of(entry.backward.value_or(input_grad + weight_grad), slices, slice);
  cost.input_grad = part_of(input_grad, slices, slice);
  cost.weight_grad = part_of(weight_grad, slices, slice);
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

/// One slice's share of the memory deltas; rounded so that they still sum to 0.
MemoryDelta slice_of(const MemoryDelta& stage, std::int32_t slices) {
  const std::int64_t kept = stage.forward / slices;
  const std::int64_t released = -stage.input_grad / slices;
  return {kept, -released, released - kept};
}

void set_links(CostModel& model, const CostTable& table, std::int32_t ranks) {
  if (table.links.empty()) return;
  model.message_between.assign(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks),
                               model.message);
  model.byte_time_between.assign(model.message_between.size(), model.byte_time);
  for (std::size_t at = 0; at < table.links.size(); ++at) {
    const LinkEntry& link = table.links[at];
    if (std::max(link.from, link.to) >= ranks)
      throw Error(
          fmt::format("{}: /links/{}: joins ranks {} and {}, but ranks are 0..{}; remove it",
                      table.file, at, link.from, link.to, ranks - 1));
    const auto pair = static_cast<std::size_t>(std::int64_t{link.from} * ranks + link.to);
    model.message_between[pair] = static_cast<Nanos>(link.transfer.nanos());
    model.byte_time_between[pair] = model.message_between[pair] - link.transfer.latency;
  }
}

}  // namespace

/// A bit takes 1 / bandwidth_gbps nanoseconds.
double TransferEntry::nanos() const {
  if (bandwidths.empty()) return static_cast<double>(latency);
  const double bits = 8.0 * static_cast<double>(bytes);
  return static_cast<double>(latency) + std::ceil(bits / speed().bandwidth_gbps(bytes));
}

LinkSpeed TransferEntry::speed() const { return {latency, bandwidths}; }

bool offloads_to_rank(const Schedule& schedule, std::int32_t rank) {
  const auto at = static_cast<std::size_t>(rank);
  return !schedule.offload_target_of_rank.empty() && schedule.offload_target_of_rank[at] != rank;
}

CostModel make_cost_model(const CostTable& table, const Schedule& schedule) {
  expect_stages(table, schedule);
  expect_durations(table, schedule);
  CostModel model;
  model.slices = schedule.shape.slices;
  model.message = static_cast<Nanos>(table.message.nanos());
  model.byte_time = model.message - table.message.latency;
  const bool recomputes = find_kinds(schedule)[static_cast<std::size_t>(OpKind::kRecompute)];
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    StageUse use = use_of(table, schedule, stage);
    use.recomputes = recomputes;
    for (std::int32_t slice = 0; slice < model.slices; ++slice)
      model.stages.push_back(slice_of(entry, use, model.slices, slice));
    model.updates.push_back(entry.update);
  }
  model.norm = table.norm;
  set_links(model, table, schedule.shape.ranks);
  const std::optional<Cluster> placed = make_cluster(table, schedule);
  return placed ? with_uncontended_messages(std::move(model), *placed, schedule) : model;
}

std::optional<Cluster> make_cluster(const CostTable& table, const Schedule& schedule) {
  if (!table.cluster) return {};
  Cluster cluster =
      place_ranks(*table.cluster, table.message.speed(), table.message.bytes, schedule.shape.ranks);
  for (const LinkEntry& link : table.links)
    cluster.links.push_back({link.from, link.to, link.transfer.speed(), link.transfer.bytes});
  return cluster;
}

namespace {

/// Returns the weight bytes of all stages; throws Error where only some stages give them.
std::vector<Bytes> weight_bytes(const CostTable& table, const Schedule& schedule) {
  std::vector<Bytes> bytes;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    if (entry.weight_bytes) bytes.push_back(*entry.weight_bytes);
  }
  if (bytes.empty() || bytes.size() == static_cast<std::size_t>(schedule.stages())) return bytes;
  throw Error(
      fmt::format("{}: /stages: some entries have 'weight_bytes' and some have not; give them for "
                  "all stages or for none",
                  table.file));
}

}  // namespace

MemoryModel make_memory_model(const CostTable& table, const Schedule& schedule) {
  expect_stages(table, schedule);
  MemoryModel model;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
    if (!entry.activation_bytes) continue;
    model.activation_bytes.push_back(slice_of(*entry.activation_bytes, schedule.shape.slices));
    model.checkpoint_bytes.push_back(saved_bytes(entry, schedule.recompute(stage)) /
                                     schedule.shape.slices);
  }
  const auto given = static_cast<std::int32_t>(model.activation_bytes.size());
  if (given != 0 && given != schedule.stages())
    throw Error(
        fmt::format("{}: /stages: some entries have 'activation_bytes' and some have not; "
                    "give them for all stages or for none",
                    table.file));
  model.weight_bytes = weight_bytes(table, schedule);
  model.static_bytes = table.static_bytes;
  if (!table.static_bytes.empty() &&
      table.static_bytes.size() != static_cast<std::size_t>(schedule.shape.ranks))
    throw Error(
        fmt::format("{}: /memory/static_bytes: has {} entries for {} ranks; give one per rank",
                    table.file, table.static_bytes.size(), schedule.shape.ranks));
  return model;
}

}  // namespace bubblescope::inline sim
