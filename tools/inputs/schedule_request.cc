// Makes the request for a schedule's builder.
#include "tools/inputs/schedule_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/models.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/searched_stages.h"

namespace bubblescope::tools {

namespace {

std::int32_t required(const std::optional<std::int32_t>& value, const std::string& schedule,
                      const std::string& flag, const std::string& command) {
  if (value) return *value;
  const std::string named = schedule == "search" ? "" : " " + schedule;
  throw Error(
      fmt::format("{} needs {}; for example '{}{} --pp 4 -m 8'", schedule, flag, command, named));
}

/// Returns the layout's stages per rank: Megatron's virtual pipeline size.
std::int32_t chunks_of_layout(const ScheduleDef& def, const ShapeOptions& given,
                              std::int32_t ranks) {
  const auto stages = static_cast<std::int32_t>(given.layout.size());
  if (stages % ranks != 0)
    throw Error(
        fmt::format("--layout has {}, which {} cannot share evenly; write as many | that their "
                    "number is a multiple",
                    counted(stages, "stage"), counted(ranks, "rank")));
  if (given.chunks && *given.chunks != stages / ranks)
    throw Error(fmt::format("--layout has {}: that is --vpp {} on {}, not {}",
                            counted(stages, "stage"), stages / ranks, counted(ranks, "rank"),
                            *given.chunks));
  if (def.implied_chunks && !def.repeats_chunks && *def.implied_chunks != stages / ranks)
    throw Error(
        fmt::format("--layout has {}, {} for each of {}, but {} always has {}; write {} or choose "
                    "another schedule",
                    counted(stages, "stage"), stages / ranks, counted(ranks, "rank"), def.name,
                    *def.implied_chunks, counted(ranks * *def.implied_chunks, "stage")));
  return stages / ranks;
}

}  // namespace

std::int32_t microbatches_of(const PredictInputs& inputs, const std::string& schedule) {
  const std::optional<std::int32_t>& given = inputs.flags().shape.microbatches;
  const ModelOptions& model = inputs.flags().model;
  const std::optional<ModelOnDevices>& on = inputs.files().model;
  const std::size_t listed =
      std::max(on ? on->sequence_lengths.size() : 0, inputs.files().arrivals.size());
  if (listed > 0 && !given && !model.global_batch)
    return static_cast<std::int32_t>(std::min<std::size_t>(listed, kMaxMicrobatches));
  if (!model.global_batch) return required(given, schedule, "-m", inputs.flags().command);
  const std::int64_t batch = *model.global_batch;
  const Parallelism& parallel = model.parallel;
  const std::int64_t samples = std::int64_t{parallel.data} * parallel.micro_batch_size;
  const std::int64_t microbatches = batch / samples;
  if (microbatches > kMaxMicrobatches)
    throw Error(
        fmt::format("--global-batch-size {} makes {} of {}, the limit is {}; give at most {}",
                    batch, counted(microbatches, "micro-batch"), counted(samples, "sample"),
                    kMaxMicrobatches, kMaxMicrobatches * samples));
  if (batch % samples != 0)
    throw Error(
        fmt::format("--global-batch-size {} is not a multiple of --dp {} times --micro-batch-size "
                    "{}; give {}, or -m",
                    batch, parallel.data, parallel.micro_batch_size,
                    std::max<std::int64_t>(microbatches, 1) * samples));
  if (given && *given != microbatches)
    throw Error(fmt::format("--global-batch-size {} makes {}, not {}; leave -m out", batch,
                            counted(microbatches, "micro-batch"), *given));
  return static_cast<std::int32_t>(microbatches);
}

ShapeOptions drop_unused_flags(ShapeOptions shape, const ScheduleDef& def) {
  if (!takes_chunks(def)) shape.chunks.reset();
  if (!def.groups_microbatches) shape.group_size.reset();
  if (!def.slices_sequences) shape.slices.reset();
  if (!def.overlaps_experts) shape.moe_overlap = false;
  if (!def.replicates_stages) shape.replicas.clear();
  if (!def.limits_in_flight) shape.in_flight.reset();
  return shape;
}

ScheduleRequest make_request(const ScheduleDef& def, const PredictInputs& inputs,
                             std::int64_t max_ops) {
  const ShapeOptions& given = inputs.flags().shape;
  expect_counts(def, {given.chunks, given.slices});
  ScheduleRequest request;
  request.shape.ranks = required(given.ranks, def.name, "--pp", inputs.flags().command);
  request.shape.microbatches = microbatches_of(inputs, def.name);
  request.shape.chunks =
      given.chunks.value_or(def.implied_chunks.value_or(default_chunks(def, given)));
  if (!given.layout.empty())
    request.shape.chunks = chunks_of_layout(def, given, request.shape.ranks);
  request.shape.slices = given.slices.value_or(default_slices(def, given));
  request.shape = fill_in_implied(def, request.shape);  // before its stages are priced
  expect_size(request.shape, max_ops);
  request.shape.group_size = given.group_size;
  request.profile = given.profile;
  request.cost = inputs.flags().cost.uniform;
  request.memory = make_uniform_memory(request.shape, inputs.config().memory);
  if (def.reads_costs) request = price_stages(std::move(request), def, inputs.config());
  const std::optional<ModelOnDevices>& on = inputs.files().model;
  const bool has_pairs = on && on->parts && on->parts->pair_order;
  if (given.moe_overlap) request.moe_overlap = has_pairs ? MoeOverlap::kPairs : MoeOverlap::kTurns;
  request.replicas = given.replicas;
  request.in_flight = given.in_flight;
  return request;
}

}  // namespace bubblescope::tools
