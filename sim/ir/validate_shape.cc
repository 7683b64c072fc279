// Checks what a schedule says besides its ops: its shape, its placement, and tables of stages and
// ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

using std::to_string;

class ShapeChecks {
 public:
  explicit ShapeChecks(const Schedule& schedule) : schedule_(schedule) {}

  Problems run() && {
    const auto ranks = static_cast<std::int32_t>(schedule_.order.size());
    check_order(ranks);
    check_placement();
    check_side_stages();
    check_offload_targets(ranks);
    if (problems_.empty()) check_size();
    if (has_replica_counts()) check_stages(ranks);
    for (const auto validate_part : {validate_chunks, validate_graph, validate_turns})
      if (problems_.empty()) problems_ = validate_part(schedule_);
    return std::move(problems_);
  }

 private:
  void report(std::string what, std::string remedy = {}) {
    problems_.push_back({{}, {}, std::move(what), std::move(remedy)});
  }

  void check_order(std::int32_t rows) {
    const Shape& shape = schedule_.shape;
    if (shape.ranks < 1 || shape.microbatches < 1 || shape.slices < 1 || rows != shape.ranks)
      report("the shape has " + counted(shape.ranks, "rank") + " and " +
                 counted(shape.microbatches, "micro-batch") + ", the order has " +
                 counted(rows, "row"),
             "they must agree and be at least 1");
    if (schedule_.fused_forwards < 1 ||
        std::int64_t{shape.microbatches} * shape.slices % std::max(schedule_.fused_forwards, 1) !=
            0)
      report("forwards are fused " + to_string(schedule_.fused_forwards) +
                 " at a time, which does not divide their number",
             "correct one");
  }

  void check_placement() {
    const std::int32_t stages = schedule_.stages();
    if (stages == 0 || schedule_.pipelines < 1 || stages % std::max(schedule_.pipelines, 1) != 0)
      report("the placement has " + counted(stages, "stage") + " for " +
                 counted(schedule_.pipelines, "pipeline"),
             "each needs the same number, at least 1");
    const std::size_t policies = schedule_.recompute_of_stage.size();
    if (policies != 0 && policies != static_cast<std::size_t>(stages))
      report("the recomputation names " + counted(static_cast<std::int64_t>(policies), "stage") +
                 " of " + to_string(stages),
             "name each, or none");
  }

  void check_side_stages() {
    const std::int32_t side = schedule_.side_stages;
    if (side < 0 || (side > 0 && side >= schedule_.stages()))
      report("of " + counted(schedule_.stages(), "stage") + ", " + to_string(side) +
                 " cannot be beside the chain",
             "leave at least one in it");
    if (side > 0 && (schedule_.pipelines > 1 || !schedule_.replicas_of_stage.empty()))
      report("stages beside the chain need one pipeline, and one rank per stage");
  }

  /// The tables of the checks grow with the shape: few ops must not claim millions.
  void check_size() {
    constexpr std::int64_t kMinLimit = 4096;
    constexpr std::int64_t kPerOp = 64;
    const std::int64_t limit = kMinLimit + kPerOp * schedule_.op_count();
    const std::int64_t microbatches = schedule_.shape.microbatches;
    const std::int64_t rows = schedule_.stages_per_pipeline() * microbatches;
    if (rows > limit || rows * schedule_.shape.slices > limit)
      report("the shape requires " + counted(schedule_.stages(), "stage") + " x " +
                 counted(microbatches, "micro-batch") + " x " +
                 counted(schedule_.shape.slices, "slice") + ", but the order has only " +
                 counted(schedule_.op_count(), "op"),
             "correct one of them");
  }

  bool has_replica_counts() {
    const std::size_t counts = schedule_.replicas_of_stage.size();
    if (counts == 0 || counts == schedule_.rank_of_stage.size()) return true;
    report("the replicas name " + counted(static_cast<std::int64_t>(counts), "stage") + " of " +
               to_string(schedule_.stages()),
           "name each, or none");
    return false;
  }

  void check_stages(std::int32_t ranks) {
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) {
      const std::int32_t rank = schedule_.rank_of_stage[stage];
      const std::int32_t replicas = schedule_.replicas(stage);
      if (rank < 0 || rank >= ranks || replicas > ranks - rank)
        report("stage " + to_string(stage) + " has no rank: its placement says " + to_string(rank) +
               ", ranks are 0.." + to_string(ranks - 1));
      else if (replicas < 1)
        report("stage " + to_string(stage) + " has " + counted(replicas, "replica"),
               "it needs at least 1");
    }
  }

  void check_offload_targets(std::int32_t ranks) {
    const std::vector<std::int32_t>& targets = schedule_.offload_target_of_rank;
    if (!targets.empty() && targets.size() != static_cast<std::size_t>(ranks))
      report("the list has " + counted(std::ssize(targets), "offload target") + " for " +
                 counted(ranks, "rank"),
             "name one for each, or none");
    for (std::size_t rank = 0; rank < targets.size(); ++rank)
      if (targets[rank] < 0 || targets[rank] >= ranks)
        report("rank " + to_string(rank) + " evicts to rank " + to_string(targets[rank]),
               "ranks are 0.." + to_string(ranks - 1));
  }

  const Schedule& schedule_;
  Problems problems_;
};

}  // namespace

Problems validate_shape(const Schedule& schedule) { return ShapeChecks(schedule).run(); }

}  // namespace bubblescope::inline sim
