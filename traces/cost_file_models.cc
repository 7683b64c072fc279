// From a cost file to the models of one schedule.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/ir/error.h"
#include "sim/model/traffic.h"
#include "traces/cost_file.h"

namespace bubblescope {

namespace {

/// The file's stages may cover one pipeline, whose replicas then cost the same, or all.
void expect_stages(const CostFile& file, const Schedule& schedule) {
  const auto given = static_cast<std::int32_t>(file.stages.size());
  if (given == schedule.stages() || given == schedule.stages_per_pipeline()) return;
  throw Error(
      fmt::format("{}: /stages: has {} entries, but {} has {} stages ({} rank(s) x {} "
                  "chunk(s)); give one entry per stage",
                  file.file, given, schedule.name, schedule.stages_per_pipeline(),
                  schedule.shape.ranks, schedule.shape.chunks));
}

/// Which kinds of ops a schedule has.
std::array<bool, kOpKinds> find_kinds(const Schedule& schedule) {
  std::array<bool, kOpKinds> has{};
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops) has[static_cast<std::size_t>(op.kind)] = true;
  return has;
}

void expect_durations(const CostFile& file, const Schedule& schedule) {
  const std::array<bool, kOpKinds> has = find_kinds(schedule);
  const bool full = has[static_cast<std::size_t>(OpKind::kBackward)];
  const bool split = has[static_cast<std::size_t>(OpKind::kInputGrad)];
  for (std::size_t stage = 0; stage < file.stages.size(); ++stage) {
    const StageEntry& entry = file.stages[stage];
    if (split && !entry.input_grad)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'input_grad' and 'weight_grad', but {} splits "
                      "the backward; add them",
                      file.file, stage, schedule.name));
    if (full && !entry.backward && !entry.input_grad)
      throw Error(
          fmt::format("{}: /stages/{}: lacks 'backward'; add it, or 'input_grad' and "
                      "'weight_grad'",
                      file.file, stage));
  }
}

StageCost slice_of(const StageEntry& entry, std::int32_t slices, std::int32_t slice) {
  const Nanos input_grad = entry.input_grad.value_or(0);
  const Nanos weight_grad = entry.weight_grad.value_or(0);
  StageCost cost;
  cost.forward = part_of(entry.forward, slices, slice);
  cost.backward = part_of(entry.backward.value_or(input_grad + weight_grad), slices, slice);
  cost.input_grad = part_of(input_grad, slices, slice);
  cost.weight_grad = part_of(weight_grad, slices, slice);
  cost.recompute = part_of(entry.recompute.value_or(entry.forward), slices, slice);
  if (entry.overlapped_pair) cost.overlapped_pair = part_of(*entry.overlapped_pair, slices, slice);
  return cost;
}

/// What one slice holds; rounded, and still summing to 0.
MemoryDelta slice_of(const MemoryDelta& stage, std::int32_t slices) {
  const std::int64_t kept = stage.forward / slices;
  const std::int64_t released = -stage.input_grad / slices;
  return {kept, -released, released - kept};
}

void set_links(CostModel& model, const CostFile& file, std::int32_t ranks) {
  if (file.links.empty()) return;
  model.message_between.assign(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks),
                               model.message);
  for (std::size_t at = 0; at < file.links.size(); ++at) {
    const LinkEntry& link = file.links[at];
    if (std::max(link.from, link.to) >= ranks)
      throw Error(
          fmt::format("{}: /links/{}: joins ranks {} and {}, but ranks are 0..{}; remove it",
                      file.file, at, link.from, link.to, ranks - 1));
    model.message_between[static_cast<std::size_t>(std::int64_t{link.from} * ranks + link.to)] =
        static_cast<Nanos>(link.transfer.nanos());
  }
}

}  // namespace

CostModel cost_model(const CostFile& file, const Schedule& schedule) {
  expect_stages(file, schedule);
  expect_durations(file, schedule);
  CostModel model;
  model.slices = schedule.shape.slices;
  model.message = static_cast<Nanos>(file.message.nanos());
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = file.stages[static_cast<std::size_t>(stage) % file.stages.size()];
    for (std::int32_t slice = 0; slice < model.slices; ++slice)
      model.stages.push_back(slice_of(entry, model.slices, slice));
  }
  set_links(model, file, schedule.shape.ranks);
  const std::optional<Cluster> placed = cluster(file, schedule);
  return placed ? with_messages_alone(std::move(model), *placed, schedule) : model;
}

std::optional<Cluster> cluster(const CostFile& file, const Schedule& schedule) {
  if (!file.cluster) return {};
  Cluster cluster =
      place(*file.cluster, file.message.speed(), file.message.bytes, schedule.shape.ranks);
  for (const LinkEntry& link : file.links)
    cluster.links.push_back({link.from, link.to, link.transfer.speed(), link.transfer.bytes});
  return cluster;
}

MemoryModel memory_model(const CostFile& file, const Schedule& schedule) {
  expect_stages(file, schedule);
  MemoryModel model;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageEntry& entry = file.stages[static_cast<std::size_t>(stage) % file.stages.size()];
    if (entry.activation_bytes)
      model.activation_bytes.push_back(slice_of(*entry.activation_bytes, schedule.shape.slices));
  }
  const auto given = static_cast<std::int32_t>(model.activation_bytes.size());
  if (given != 0 && given != schedule.stages())
    throw Error(
        fmt::format("{}: /stages: some entries have 'activation_bytes' and some have not; "
                    "give them for all stages or for none",
                    file.file));
  model.static_bytes = file.static_bytes;
  if (!file.static_bytes.empty() &&
      file.static_bytes.size() != static_cast<std::size_t>(schedule.shape.ranks))
    throw Error(
        fmt::format("{}: /memory/static_bytes: has {} entries for {} ranks; give one per rank",
                    file.file, file.static_bytes.size(), schedule.shape.ranks));
  return model;
}

}  // namespace bubblescope
