// Divides the layers that the ends leave.
#include "sim/model/megatron_counts.h"

#include <fmt/format.h>

#include <cstddef>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

/// The ends whose layers are given.
const char* names_of(const UnevenEnds& ends) {
  if (!ends.last) return "`first_layers`";
  return ends.first ? "`first_layers` or `last_layers`" : "`last_layers`";
}

/// Says which parts of the model count as layers, too.
const char* counted_by(const UnevenEnds& ends) {
  if (!ends.counts_loss) return ends.counts_embedding ? ", the embedding among them," : "";
  return ends.counts_embedding ? ", embedding and loss among them," : ", the loss among them,";
}

std::vector<std::int32_t> counts_with_ends(std::int32_t layers, std::int32_t stages,
                                           const UnevenEnds& ends) {
  const std::int32_t inner = stages - (ends.first ? 1 : 0) - (ends.last ? 1 : 0);
  if (inner < 0)
    throw Error(Fault::kProblem,
                "one stage cannot have `first_layers` and `last_layers`; give one of them");
  const std::int64_t outer = std::int64_t{ends.first.value_or(0)} + ends.last.value_or(0);
  const std::int64_t middle = layers - outer;
  if (middle < 0)
    throw Error(Fault::kProblem,
                fmt::format("the ends have {}, but there are only {}; choose a smaller {}",
                            counted(outer, "layer"), layers, names_of(ends)));
  if (inner == 0 && middle > 0)
    throw Error(
        Fault::kProblem,
        fmt::format(
            "the ends have {} of {}, and there is no other stage for the rest; choose a larger {}",
            outer, counted(layers, "layer"), names_of(ends)));
  if (inner > 0 && middle % inner != 0)
    throw Error(
        Fault::kProblem,
        fmt::format(
            "{} cannot be divided evenly into the {}; choose other `first_layers` or `last_layers`",
            counted(middle, "layer"), counted(inner, "inner stage")));
  std::vector<std::int32_t> counts(static_cast<std::size_t>(stages),
                                   inner == 0 ? 0 : static_cast<std::int32_t>(middle / inner));
  if (ends.first) counts.front() = *ends.first;
  if (ends.last) counts.back() = *ends.last;
  return counts;
}

void expect_loop(const Schedule& schedule, std::int32_t stages) {
  const std::int32_t ranks = schedule.shape.ranks;
  bool is_loop = stages % ranks == 0;
  for (std::int32_t stage = 0; stage < stages; ++stage)
    is_loop = is_loop && schedule.rank_of_stage[static_cast<std::size_t>(stage)] == stage % ranks;
  if (!is_loop)
    throw Error(Fault::kProblem,
                fmt::format("{} does not place its stages in a loop, for which Megatron-LM's rule "
                            "of `first_layers` and `last_layers` is made; give `layout`",
                            schedule.name));
}

}  // namespace

std::vector<std::int32_t> compute_megatron_counts(std::int32_t layers, std::int32_t stages,
                                                  const UnevenEnds& ends) {
  if (ends.first || ends.last) return counts_with_ends(layers, stages, ends);
  const std::int32_t shared = layers + (ends.counts_embedding ? 1 : 0) + (ends.counts_loss ? 1 : 0);
  if (shared % stages != 0)
    throw Error(
        Fault::kProblem,
        fmt::format("{}{} cannot be divided evenly into {}; give `first_layers` or `last_layers`{}",
                    counted(shared, "layer"), counted_by(ends), counted(stages, "stage"),
                    ends.any() ? " instead" : ""));
  std::vector<std::int32_t> counts(static_cast<std::size_t>(stages), shared / stages);
  if (ends.counts_embedding) --counts.front();
  if (ends.counts_loss) --counts.back();
  return counts;
}

std::vector<std::int64_t> place_megatron_counts(std::int64_t layers, const Schedule& schedule,
                                                const UnevenEnds& ends) {
  const std::int32_t ranks = schedule.shape.ranks;
  const std::int32_t stages = schedule.stages_per_pipeline() - schedule.side_stages;
  expect_loop(schedule, stages);
  const auto all = static_cast<std::int32_t>(layers);
  const bool is_by_rank = ends.first || ends.last;
  const std::int32_t chunks = is_by_rank ? stages / ranks : 1;
  const std::vector<std::int32_t> counts =
      compute_megatron_counts(all, is_by_rank ? ranks : stages, ends);
  std::vector<std::int64_t> placed;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const std::int32_t count = counts[static_cast<std::size_t>(stage) % counts.size()];
    if (count % chunks != 0)
      throw Error(
          Fault::kProblem,
          fmt::format("the {} of rank {} cannot be divided evenly into its {}; choose other "
                      "`first_layers`, `last_layers` or `vpp`",
                      counted(count, "layer"), stage % ranks, counted(chunks, "chunk")));
    placed.push_back(count / chunks);
  }
  return placed;
}

}  // namespace bubblescope::inline sim
