// One row per part of a schedule beyond its order, whatever the format.
#include "traces/schedules/find_losses.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "sim/ir/posted_kinds.h"

namespace bubblescope::traces {

namespace {

using IsKept = bool (*)(OpKind kind);

/// The cells of a rank that are kept, from its posted list where there is one.
std::vector<RankOrder> keep_cells(const Schedule& schedule, IsKept is_kept) {
  const std::vector<RankOrder>& lists = schedule.posted.empty() ? schedule.order : schedule.posted;
  std::vector<RankOrder> kept(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    std::copy_if(lists[rank].begin(), lists[rank].end(), std::back_inserter(kept[rank]),
                 [&](const Op& op) { return is_kept(op.kind); });
  return kept;
}

bool has_cell(const Schedule& schedule, IsKept is_wanted) {
  return std::any_of(schedule.posted.begin(), schedule.posted.end(), [&](const RankOrder& list) {
    return std::any_of(list.begin(), list.end(), [&](const Op& op) { return is_wanted(op.kind); });
  });
}

// The names of sim/ir alone would be ambiguous beside those of simulators' jobs.
bool is_posted_message(OpKind kind) { return is_message(kind); }
bool is_sharding(OpKind kind) { return is_collective(kind); }
bool is_message_or_op(OpKind kind) { return is_compute(kind) || is_message(kind); }

bool has_copies(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const RankOrder& list) {
    return std::any_of(list.begin(), list.end(), [](const Op& op) { return is_copy(op.kind); });
  });
}

std::size_t count_waits(const Schedule& schedule) {
  std::size_t count = 0;
  for (const RankOrder& list : keep_cells(schedule, is_wait)) count += list.size();
  return count;
}

bool have_equal_recomputes(const Schedule& a, const Schedule& b) {
  for (std::int32_t stage = 0; stage < std::min(a.stages(), b.stages()); ++stage)
    if (a.recompute(stage) != b.recompute(stage) && a.recompute(stage) != Recompute::kNone)
      return false;
  return true;
}

bool have_equal_sizes(const Schedule& a, const Schedule& b) {
  return a.shape.ranks == b.shape.ranks && a.shape.microbatches == b.shape.microbatches &&
         a.shape.slices == b.shape.slices;
}

/// Every schedule has a shape and a placement. Readers that derive them from the ops find others
/// where ops are missing or on wrong ranks, and what was not legal would be.
bool always(const Schedule&) { return true; }

/// A part of a schedule that a format may have no words for.
struct Part {
  const char* loss;
  bool (*is_in)(const Schedule& schedule);
  bool (*are_equal)(const Schedule& written, const Schedule& read_back);
};

constexpr Part kParts[] = {
    {"the ranks, micro-batches and slices that have no ops, so it has only the others", always,
     have_equal_sizes},
    {"the ranks that its stages should be on, so they are on those that run them", always,
     [](const Schedule& a, const Schedule& b) { return a.rank_of_stage == b.rank_of_stage; }},
    {"that its backwards are missing, so it has only forwards", always,
     [](const Schedule& a, const Schedule& b) { return a.forward_only == b.forward_only; }},
    {"the weights that ops read, so every op of a step reads the same",
     [](const Schedule& schedule) { return !schedule.weights.empty(); },
     [](const Schedule& a, const Schedule& b) { return a.weights == b.weights; }},
    {"which forwards run as one, so each runs alone",
     [](const Schedule& schedule) { return schedule.fused_forwards > 1; },
     [](const Schedule& a, const Schedule& b) { return a.fused_forwards == b.fused_forwards; }},
    {"the ranks that evicted activations go to, so they go to the host", has_copies,
     [](const Schedule& a, const Schedule& b) {
       return a.offload_target_of_rank == b.offload_target_of_rank;
     }},
    {"what is recomputed, so everything is",
     [](const Schedule& schedule) { return !schedule.recompute_of_stage.empty(); },
     have_equal_recomputes},
    {"that it has two pipelines", [](const Schedule& schedule) { return schedule.pipelines > 1; },
     [](const Schedule& a, const Schedule& b) { return a.pipelines == b.pipelines; }},
    {"the replicas of stages",
     [](const Schedule& schedule) { return !schedule.replicas_of_stage.empty(); },
     [](const Schedule& a, const Schedule& b) {
       return a.replicas_of_stage == b.replicas_of_stage && a.turns_of_stage == b.turns_of_stage;
     }},
    {"which stages are beside the chain",
     [](const Schedule& schedule) { return schedule.side_stages > 0; },
     [](const Schedule& a, const Schedule& b) { return a.side_stages == b.side_stages; }},
    {"how many chunks a rank's share is divided into",
     [](const Schedule& schedule) { return schedule.shape.chunks > 1; },
     [](const Schedule& a, const Schedule& b) { return a.shape.chunks == b.shape.chunks; }},
    {"where messages are posted",
     [](const Schedule& schedule) { return has_cell(schedule, is_posted_message); },
     [](const Schedule& a, const Schedule& b) {
       return keep_cells(a, is_message_or_op) == keep_cells(b, is_message_or_op);
     }},
    {"the waits for sends and reductions",
     [](const Schedule& schedule) { return has_cell(schedule, is_wait); },
     [](const Schedule& a, const Schedule& b) { return count_waits(a) <= count_waits(b); }},
    {"UNSHARD, RESHARD and REDUCE_GRAD",
     [](const Schedule& schedule) { return has_cell(schedule, is_sharding); },
     [](const Schedule& a, const Schedule& b) {
       return keep_cells(a, is_sharding) == keep_cells(b, is_sharding);
     }},
};

}  // namespace

std::vector<std::string> find_losses(const Schedule& written, const Schedule& read_back) {
  std::vector<std::string> losses;
  for (const Part& part : kParts)
    if (part.is_in(written) && !part.are_equal(written, read_back)) losses.emplace_back(part.loss);
  return losses;
}

}  // namespace bubblescope::traces
