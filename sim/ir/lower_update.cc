// Adds reductions, the norm and optimizer steps behind a Program's gradients.
#include "sim/ir/lower_update.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/collective_lanes.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

constexpr std::string_view kLeaveOut = "; leave --optimizer and --grad-reduction out";

Op op_of(OpKind kind, std::int32_t stage) { return {stage, 0, 0, kind, Pairing::kAlone}; }

/// One stage on one of its ranks.
struct Home {
  std::int32_t stage = 0;
  std::int32_t rank = 0;
  std::vector<InstructionId> complete;  ///< its last gradients, or the reduction of them
  bool reduced = false;                 ///< by a REDUCE_GRAD that the schedule posts
  std::int32_t ops_left = 0;            ///< ops of the rank after the last gradient

  CollectivePart part(OpKind kind) const { return {op_of(kind, stage), rank, complete}; }
};

/// All copies of the same weights.
using Group = std::vector<Home*>;

/// The position of the copy whose gradients are complete last.
std::int32_t ops_left(const Group& group) {
  std::int32_t least = group.front()->ops_left;
  for (const Home* home : group) least = std::min(least, home->ops_left);
  return least;
}

/// Lowers one update at the end of the step.
class UpdateOnce {
 public:
  UpdateOnce(const Schedule& schedule, const Program& program, const UpdateOptions& options)
      : schedule_(schedule),
        program_(program),
        options_(options),
        last_compute_(static_cast<std::size_t>(program.ranks)),
        last_in_host_(static_cast<std::size_t>(program.ranks)),
        norm_(static_cast<std::size_t>(program.ranks)),
        draft_(program),
        collectives_(draft_, "collective") {}

  std::variant<Program, Deadlock> run() && {
    find_homes();
    find_gradients();
    for (const Group& group : groups_to_reduce()) reduce(group);
    if (options_.optimizer == OptimizerMode::kBarrier) sum_norm();
    if (options_.optimizer == OptimizerMode::kPostValidation) pass_norm_on();
    if (options_.optimizer != OptimizerMode::kNone)
      for (const Home& home : homes_)
        if (!home.complete.empty()) add_step(home);
    return std::move(draft_).finish();
  }

 private:
  void find_homes() {
    for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) {
      first_home_.push_back(homes_.size());
      for (std::int32_t replica = 0; replica < schedule_.replicas(stage); ++replica)
        homes_.push_back({stage, schedule_.rank_of_stage[stage] + replica, {}, false, 0});
    }
  }

  Home& home_of(const Instruction& instruction) {
    const std::int32_t stage = instruction.op.stage;
    const std::int32_t replica = instruction.rank - schedule_.rank_of_stage[stage];
    return homes_[first_home_[stage] + static_cast<std::size_t>(replica)];
  }

  /// Walks from the end of the step to its start.
  void find_gradients() {
    std::vector<std::int32_t> ops(static_cast<std::size_t>(program_.ranks), 0);
    for (InstructionId id = program_.size(); id-- > 0;) {
      const Instruction& instruction = program_.instructions[id];
      const auto rank = static_cast<std::size_t>(instruction.rank);
      const bool blocks =
          instruction.lane != kNoLane && program_.lanes[instruction.lane].name == "host";
      if (blocks && !last_in_host_[rank]) last_in_host_[rank] = id;
      if (instruction.op.kind == OpKind::kReduceGrad) keep_posted(id);
      if (!is_compute(instruction.op.kind)) continue;
      if (!last_compute_[rank]) last_compute_[rank] = id;
      if (makes_weight_grad(instruction.op.kind)) {
        Home& home = home_of(instruction);
        if (home.complete.empty()) home.ops_left = ops[rank];
        if (!home.reduced) home.complete.push_back(id);
      }
      ++ops[rank];
    }
  }

  /// The last reduction that the schedule posts for a stage waits for all gradients before it.
  void keep_posted(InstructionId reduction) {
    Home& home = home_of(program_.instructions[reduction]);
    if (!home.reduced) home.complete = {reduction};
    home.reduced = true;
  }

  /// Orders groups by when their gradients are complete, the same on all ranks.
  std::vector<Group> groups_to_reduce() {
    std::vector<Group> groups(static_cast<std::size_t>(schedule_.stages_per_pipeline()));
    for (Home& home : homes_)
      if (!home.complete.empty() && !home.reduced)
        groups[static_cast<std::size_t>(home.stage) % groups.size()].push_back(&home);
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
    for (const Home* home : group) {
      parts.push_back(home->part(OpKind::kReduceGrad));
      if (options_.reduction == GradReduction::kSerial)
        parts.back().awaited = {*last_compute_[static_cast<std::size_t>(home->rank)]};
    }
    const std::vector<InstructionId> reductions = collectives_.add_together(parts);
    for (std::size_t at = 0; at < group.size(); ++at) group[at]->complete = {reductions[at]};
  }

  /// One part per rank, which waits for all of the rank's contributions to the norm.
  std::vector<CollectivePart> parts_of_norm() const {
    std::map<std::int32_t, CollectivePart> part_of_rank;
    for (const Home& home : homes_) {
      if (home.complete.empty()) continue;
      CollectivePart& part =
          part_of_rank
              .try_emplace(home.rank,
                           CollectivePart{op_of(OpKind::kNorm, home.stage), home.rank, {}})
              .first->second;
      part.awaited.insert(part.awaited.end(), home.complete.begin(), home.complete.end());
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
  void pass_norm_on() {
    const std::vector<CollectivePart> parts = parts_of_norm();
    std::vector<InstructionId> so_far;
    for (std::size_t at = 0; at < parts.size(); ++at) {
      so_far.push_back(collectives_.add(parts[at], Role::kPost));
      norm_[static_cast<std::size_t>(parts[at].rank)] = so_far;
      if (at + 1 == parts.size()) break;
      const InstructionId message =
          draft_.add({parts[at].op, kNoLane, parts[at].rank, parts[at + 1].rank, Role::kWork});
      for (const InstructionId part : so_far) draft_.wait_for(part);
      so_far = {message};
    }
  }

  void add_step(const Home& home) {
    const auto rank = static_cast<std::size_t>(home.rank);
    draft_.add({op_of(OpKind::kOptimizer, home.stage), static_cast<std::uint32_t>(home.rank),
                home.rank, home.rank});
    for (const InstructionId awaited : home.complete) draft_.wait_for(awaited);
    for (const InstructionId awaited : norm_[rank]) draft_.wait_for(awaited);
    if (last_in_host_[rank]) draft_.wait_for(*last_in_host_[rank]);
  }

  const Schedule& schedule_;
  const Program& program_;
  const UpdateOptions& options_;
  std::vector<Home> homes_;                                 ///< by stage, then rank
  std::vector<std::size_t> first_home_;                     ///< [stage]
  std::vector<std::optional<InstructionId>> last_compute_;  ///< [rank]
  std::vector<std::optional<InstructionId>> last_in_host_;  ///< [rank]
  std::vector<std::vector<InstructionId>> norm_;  ///< [rank]: what its optimizer steps wait for
  ProgramDraft draft_;
  CollectiveLanes collectives_;
};

}  // namespace

std::variant<Program, Deadlock> lower_update(const ValidSchedule& schedule, const Program& program,
                                             const UpdateOptions& options) {
  if (schedule->forward_only)
    throw Error(Fault::kProblem, schedule->name + " makes no gradients" + std::string(kLeaveOut));
  if (schedule->weights.empty()) return UpdateOnce(schedule, program, options).run();
  return lower_updates_as_written(schedule, program, options);
}

}  // namespace bubblescope
