// Infers the parts of a schedule that bare lists of cells leave out.
#include "traces/schedules/infer_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::int32_t kNoRank = -1;

/// The index of the first op that is `wanted`; the list's size where there is none.
template <class Wanted>
std::size_t find_in(const RankOrder& list, Wanted wanted) {
  return static_cast<std::size_t>(std::find_if(list.begin(), list.end(), wanted) - list.begin());
}

class Inference {
 public:
  Inference(const std::vector<RankOrder>& lists, const PlaceOfCell& place)
      : lists_(lists), place_(place) {}

  void infer_into(Schedule& schedule) const {
    schedule.shape.ranks = static_cast<std::int32_t>(lists_.size());
    infer_placement(schedule);
    const Op largest = find_largest();
    schedule.shape.microbatches = largest.microbatch + 1;
    schedule.shape.slices = largest.slice + 1;
    if (const auto excess = explain_size(schedule)) refuse_size(largest, *excess);
    schedule.forward_only = !any_backward();
    schedule.pipelines = has_two_pipelines(schedule) ? 2 : 1;
    const std::int32_t ranks = schedule.shape.ranks;
    schedule.shape.chunks = std::max(1, (schedule.stages_per_pipeline() + ranks - 1) / ranks);
  }

 private:
  std::string place_of(std::int32_t rank, std::size_t op) const {
    return place_(rank, count_cells(lists_[rank], op + 1) - 1);
  }

  void infer_placement(Schedule& schedule) const {
    std::vector<std::int32_t> last_rank;
    for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
      for (const Op& op : lists_[rank]) {
        if (!is_compute(op.kind)) continue;
        if (op.stage >= schedule.stages()) schedule.rank_of_stage.resize(op.stage + 1, kNoRank);
        last_rank.resize(schedule.rank_of_stage.size(), kNoRank);
        std::int32_t& first_rank = schedule.rank_of_stage[op.stage];
        if (first_rank == kNoRank) first_rank = rank;
        last_rank[op.stage] = rank;
      }
    infer_replicas(schedule, last_rank);
    if (schedule.rank_of_stage.empty())
      throw Error(
          fmt::format("{}: there is no compute op, such as 0F0, on any rank", place_(0, 0)));
    const auto hole =
        std::find(schedule.rank_of_stage.begin(), schedule.rank_of_stage.end(), kNoRank);
    if (hole != schedule.rank_of_stage.end())
      refuse_hole(static_cast<std::int32_t>(hole - schedule.rank_of_stage.begin()),
                  schedule.stages() - 1);
  }

  /// Consecutive ranks share a stage where micro-batch i is run by rank i mod r of the r.
  void infer_replicas(Schedule& schedule, const std::vector<std::int32_t>& last_rank) const {
    std::vector<std::int32_t> replicas;
    for (std::size_t stage = 0; stage < last_rank.size(); ++stage)
      replicas.push_back(last_rank[stage] - schedule.rank_of_stage[stage] + 1);
    const auto shared = [](std::int32_t count) { return count > 1; };
    if (std::none_of(replicas.begin(), replicas.end(), shared)) return;
    for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
      for (const Op& op : lists_[rank]) {
        if (!is_compute(op.kind) || !shared(replicas[op.stage])) continue;
        const std::int32_t first_rank = schedule.rank_of_stage[op.stage];
        if (rank - first_rank != op.microbatch % replicas[op.stage])
          refuse_two_ranks(op.stage, first_rank, rank == first_rank ? last_rank[op.stage] : rank);
      }
    schedule.replicas_of_stage = std::move(replicas);
  }

  [[noreturn]] void refuse_two_ranks(std::int32_t stage, std::int32_t first_rank,
                                     std::int32_t rank) const {
    const auto runs_stage = [&](const Op& op) { return is_compute(op.kind) && op.stage == stage; };
    const std::size_t first = find_in(lists_[first_rank], runs_stage);
    const std::size_t second = find_in(lists_[rank], runs_stage);
    throw Error(
        fmt::format("{}: '{}' puts stage {} on rank {}, but '{}' ({}) puts it on rank {}; a stage "
                    "has one rank, or consecutive ones that take its micro-batches in turn",
                    place_of(rank, second), to_string(lists_[rank][second]), stage, rank,
                    to_string(lists_[first_rank][first]), place_of(first_rank, first), first_rank));
  }

  [[noreturn]] void refuse_hole(std::int32_t hole, std::int32_t last) const {
    const std::string seen = describe_first([&](const Op& op) { return op.stage == last; });
    throw Error(
        fmt::format("{} means that there are stages 0..{}, but no rank runs stage {}; add "
                    "its ops, or number the stages without gaps",
                    seen, last, hole));
  }

  [[noreturn]] void refuse_size(const Op& largest, const std::string& excess) const {
    const std::string seen = describe_first([&](const Op& op) {
      return largest.slice > largest.microbatch ? op.slice == largest.slice
                                                : op.microbatch == largest.microbatch;
    });
    throw Error(fmt::format("{} {}", seen, excess));
  }

  /// Returns an op with the largest micro-batch and the largest slice of all ops.
  Op find_largest() const {
    Op largest;
    for (const RankOrder& list : lists_)
      for (const Op& op : list) {
        if (!is_compute(op.kind)) continue;
        largest.microbatch = std::max(largest.microbatch, op.microbatch);
        largest.slice = std::max(largest.slice, op.slice);
      }
    return largest;
  }

  /// Names the first compute op that is `wanted`: "zb.csv:1:4: '0F9'".
  template <class Wanted>
  std::string describe_first(Wanted wanted) const {
    const auto found = [&](const Op& op) { return is_compute(op.kind) && wanted(op); };
    std::int32_t rank = 0;
    while (find_in(lists_[rank], found) == lists_[rank].size()) ++rank;
    const std::size_t at = find_in(lists_[rank], found);
    return fmt::format("{}: '{}'", place_of(rank, at), to_string(lists_[rank][at]));
  }

  bool any_backward() const {
    const auto is_backward = [](const Op& op) {
      return gives_input_grad(op.kind) || op.kind == OpKind::kWeightGrad;
    };
    return std::any_of(lists_.begin(), lists_.end(), [&](const RankOrder& list) {
      return std::any_of(list.begin(), list.end(), is_backward);
    });
  }

  bool has_two_pipelines(const Schedule& schedule) const {
    const std::int32_t half = schedule.stages() / 2;
    if (schedule.stages() % 2 != 0) return false;
    const auto is_in_own_half = [&](const Op& op) {
      const bool second_half =
          std::int64_t{op.microbatch} * 2 >= std::int64_t{schedule.shape.microbatches};
      return !is_compute(op.kind) || (op.stage >= half) == second_half;
    };
    return std::all_of(lists_.begin(), lists_.end(), [&](const RankOrder& list) {
      return std::all_of(list.begin(), list.end(), is_in_own_half);
    });
  }

  const std::vector<RankOrder>& lists_;
  const PlaceOfCell& place_;
};

}  // namespace

Schedule infer_schedule(std::string name, std::vector<RankOrder> lists, const PlaceOfCell& place) {
  Schedule schedule = make_schedule_of_lists(std::move(lists));
  schedule.name = std::move(name);
  Inference(get_lists(schedule), place).infer_into(schedule);
  return schedule;
}

Schedule make_schedule_of_lists(std::vector<RankOrder> lists) {
  const auto ordered = [](const Op& op) { return occurs_in_order(op.kind); };
  const auto copies = [](const Op& op) { return is_copy(op.kind); };
  bool all_ordered = true;
  bool any_copies = false;
  for (const RankOrder& list : lists) {
    all_ordered = all_ordered && std::all_of(list.begin(), list.end(), ordered);
    any_copies = any_copies || std::any_of(list.begin(), list.end(), copies);
  }
  Schedule schedule;
  if (any_copies)
    schedule.offload_target_of_rank = host_offload_targets(static_cast<std::int32_t>(lists.size()));
  if (all_ordered) {
    schedule.order = std::move(lists);
    return schedule;
  }
  for (const RankOrder& list : lists)
    std::copy_if(list.begin(), list.end(), std::back_inserter(schedule.order.emplace_back()),
                 ordered);
  schedule.posted = std::move(lists);
  return schedule;
}

std::optional<std::string> explain_size(const Schedule& schedule) {
  constexpr std::int64_t kAlwaysFine = 4096;
  constexpr std::int64_t kPerOp = 64;
  const Shape& shape = schedule.shape;
  const std::int64_t allowed = kAlwaysFine + kPerOp * schedule.op_count();
  const std::int64_t rows = std::int64_t{schedule.stages()} * shape.microbatches;  // at most 2^40
  if (rows <= allowed && rows * shape.slices <= allowed) return {};
  return fmt::format(
      "needs {} x {} x {}, but has only {}; correct "
      "the number, or add the missing ops",
      counted(schedule.stages(), "stage"), counted(shape.microbatches, "micro-batch"),
      counted(shape.slices, "slice"), counted(schedule.op_count(), "op"));
}

}  // namespace bubblescope::traces
