// Adds reductions, the norm and optimizer steps after a Program's gradients.
#include "sim/ir/lower_update.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/collective_lanes.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::string_view kRemedy = "; leave `optimizer` and `grad_reduction` out";

Op make_op(OpKind kind, std::int32_t stage) { return {stage, 0, 0, kind, Pairing::kAlone}; }

/// One stage on one of its ranks.
struct StageReplica {
  std::int32_t stage = 0;
  std::int32_t rank = 0;
  std::vector<InstructionId> complete;  ///< its last gradients, or the reduction of them
  bool reduced = false;                 ///< by a REDUCE_GRAD that the schedule posts
  std::int32_t ops_left = 0;            ///< ops of the rank after the last gradient

  CollectivePart part(OpKind kind) const { return {make_op(kind, stage), rank, complete}; }
};

/// All copies of the same weights.
using Group = std::vector<StageReplica*>;

/// The position of the copy whose gradients are complete last.
std::int32_t ops_left(const Group& group) {
  std::int32_t smallest = group.front()->ops_left;
  for (const StageReplica* stage_replica : group)
    smallest = std::min(smallest, stage_replica->ops_left);
  return smallest;
}

/// Lowers one update at the end of the step.
class StepUpdate {
 public:
  StepUpdate(const Schedule& schedule, const Program& program, const UpdateOptions& options)
      : schedule_(schedule),
        program_(program),
        options_(options),
        last_compute_(static_cast<std::size_t>(program.ranks)),
        last_host_event_(static_cast<std::size_t>(program.ranks)),
        norm_(static_cast<std::size_t>(program.ranks)),
        draft_(program),
        collectives_(draft_, "collective") {}

  std::variant<Program, Deadlock> run() && {
    find_stage_replicas();
    find_gradients();
    for (const Group& group : groups_to_reduce()) reduce(group);
    if (options_.optimizer == OptimizerMode::kBarrier) sum_norm();
    if (options_.optimizer == OptimizerMode::kPostValidation) chain_partial_norms();
    if (options_.optimizer != OptimizerMode::kNone)
      for (const StageReplica& stage_replica : stage_replicas_)
        if (!stage_replica.complete.empty()) add_step(stage_replica);
    return std::move(draft_).finish();
  }

 private:
  void find_stage_replicas() {
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) {
      first_replica_.push_back(stage_replicas_.size());
      for (std::int32_t replica = 0; replica < schedule_.replicas(stage); ++replica)
        stage_replicas_.push_back({stage, schedule_.rank_of_stage[stage] + replica, {}, false, 0});
    }
  }

  StageReplica& find_replica(const Instruction& instruction) {
    const std::int32_t stage = instruction.op.stage;
    const std::int32_t replica = instruction.rank - schedule_.rank_of_stage[stage];
    return stage_replicas_[first_replica_[stage] + static_cast<std::size_t>(replica)];
  }

  /// Walks from the end of the step to its start.
  void find_gradients() {
    std::vector<std::int32_t> ops(static_cast<std::size_t>(program_.ranks), 0);
    for (InstructionId id = program_.size(); id-- > 0;) {
      const Instruction& instruction = program_.instructions[id];
      const auto rank = static_cast<std::size_t>(instruction.rank);
      const bool blocks =
          instruction.lane != kNoLane && program_.lanes[instruction.lane].name == kHostLane;
      if (blocks && !last_host_event_[rank]) last_host_event_[rank] = id;
      if (instruction.op.kind == OpKind::kReduceGrad) use_posted_reduction(id);
      if (!is_compute(instruction.op.kind)) continue;
      if (!last_compute_[rank]) last_compute_[rank] = id;
      if (makes_weight_grad(instruction.op.kind)) {
        StageReplica& stage_replica = find_replica(instruction);
        if (stage_replica.complete.empty()) stage_replica.ops_left = ops[rank];
        if (!stage_replica.reduced) stage_replica.complete.push_back(id);
      }
      ++ops[rank];
    }
  }

  /// The last reduction that the schedule posts for a stage waits for all gradients before it.
  void use_posted_reduction(InstructionId reduction) {
    StageReplica& stage_replica = find_replica(program_.instructions[reduction]);
    if (!stage_replica.reduced) stage_replica.complete = {reduction};
    stage_replica.reduced = true;
  }

  /// Orders groups by when their gradients are complete, the same on all ranks.
  std::vector<Group> groups_to_reduce() {
    std::vector<Group> groups(static_cast<std::size_t>(schedule_.stages_per_pipeline()));
    for (StageReplica& stage_replica : stage_replicas_)
      if (!stage_replica.complete.empty() && !stage_replica.reduced)
        groups[static_cast<std::size_t>(stage_replica.stage) % groups.size()].push_back(
            &stage_replica);
    const bool only_replicas = options_.reduction == GradReduction::kNone;
    std::erase_if(groups, [&](const Group& group) {
      return group.empty() || (only_replicas && group.size() == 1);
    });
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return ops_left(a) > ops_left(b); });
    return groups;
  }

  void reduce(const Group& group) {
    std::vector<CollectivePart> parts;
    for (const StageReplica* stage_replica : group) {
      parts.push_back(stage_replica->part(OpKind::kReduceGrad));
      if (options_.reduction == GradReduction::kSerial)
        parts.back().awaited = find_last_ops(stage_replica->rank);
    }
    const std::vector<InstructionId> reductions = collectives_.add_together(parts);
    for (std::size_t at = 0; at < group.size(); ++at) group[at]->complete = {reductions[at]};
  }

  /// The ops after which everything has run that the rank computes.
  std::vector<InstructionId> find_last_ops(std::int32_t rank) const {
    if (!options_.in_any_order) return {*last_compute_[static_cast<std::size_t>(rank)]};
    std::vector<InstructionId> all;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Instruction& instruction = program_.instructions[id];
      if (instruction.rank == rank && is_compute(instruction.op.kind)) all.push_back(id);
    }
    return all;
  }

  /// Returns one part per rank, which waits for all of the rank's contributions to the norm.
  std::vector<CollectivePart> parts_of_norm() const {
    std::map<std::int32_t, CollectivePart> part_of_rank;
    for (const StageReplica& stage_replica : stage_replicas_) {
      if (stage_replica.complete.empty()) continue;
      CollectivePart& part =
          part_of_rank
              .try_emplace(stage_replica.rank,
                           CollectivePart{
                               make_op(OpKind::kNorm, stage_replica.stage), stage_replica.rank, {}})
              .first->second;
      part.awaited.insert(part.awaited.end(), stage_replica.complete.begin(),
                          stage_replica.complete.end());
    }
    std::vector<CollectivePart> parts;
    for (auto& [rank, part] : part_of_rank) parts.push_back(std::move(part));
    return parts;
  }

  void sum_norm() {
    const std::vector<CollectivePart> parts = parts_of_norm();
    const std::vector<InstructionId> sums = collectives_.add_together(parts);
    for (std::size_t at = 0; at < parts.size(); ++at)
      norm_[static_cast<std::size_t>(parts[at].rank)] = {sums[at]};
  }

  /// Each rank in turn adds its own part to the sum that it received.
  void chain_partial_norms() {
    const std::vector<CollectivePart> parts = parts_of_norm();
    std::vector<InstructionId> partial_norm;
    for (std::size_t at = 0; at < parts.size(); ++at) {
      partial_norm.push_back(collectives_.add(parts[at], Role::kPost));
      norm_[static_cast<std::size_t>(parts[at].rank)] = partial_norm;
      if (at + 1 == parts.size()) break;
      const InstructionId message =
          draft_.add({parts[at].op, kNoLane, parts[at].rank, parts[at + 1].rank, Role::kWork});
      for (const InstructionId part : partial_norm) draft_.wait_for(part);
      partial_norm = {message};
    }
  }

  void add_step(const StageReplica& stage_replica) {
    const auto rank = static_cast<std::size_t>(stage_replica.rank);
    draft_.add({make_op(OpKind::kOptimizer, stage_replica.stage),
                static_cast<std::uint32_t>(stage_replica.rank), stage_replica.rank,
                stage_replica.rank});
    for (const InstructionId awaited : stage_replica.complete) draft_.wait_for(awaited);
    for (const InstructionId awaited : norm_[rank]) draft_.wait_for(awaited);
    if (last_host_event_[rank]) draft_.wait_for(*last_host_event_[rank]);
  }

  const Schedule& schedule_;
  const Program& program_;
  const UpdateOptions& options_;
  std::vector<StageReplica> stage_replicas_;                   ///< by stage, then rank
  std::vector<std::size_t> first_replica_;                     ///< [stage]
  std::vector<std::optional<InstructionId>> last_compute_;     ///< [rank]
  std::vector<std::optional<InstructionId>> last_host_event_;  ///< [rank]
  std::vector<std::vector<InstructionId>> norm_;  ///< [rank]: what its optimizer steps wait for
  ProgramDraft draft_;
  CollectiveLanes collectives_;
};

}  // namespace

std::variant<Program, Deadlock> lower_update(const ValidSchedule& schedule, const Program& program,
                                             const UpdateOptions& options) {
  if (schedule->forward_only)
    throw Error(Fault::kProblem, schedule->name + " produces no gradients" + std::string(kRemedy));
  if (schedule->weights.empty()) return StepUpdate(schedule, program, options).run();
  return lower_asynchronous_updates(schedule, program, options);
}

}  // namespace bubblescope::inline sim
