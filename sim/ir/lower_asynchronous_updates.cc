// Lowers updates within a step, at the ops where a schedule without flushes writes its weights.
#include <map>
#include <utility>
#include <vector>

#include "sim/ir/collective_lanes.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_update.h"

namespace bubblescope::inline sim {

namespace {

/// An op that ends with an update, on one of its stage's ranks.
struct Writer {
  std::int32_t rank = 0;
  InstructionId op = 0;
};

/// Updates ordered by version, then by stage, which is the same on all ranks.
using Updates = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Writer>>;

class AsynchronousUpdates {
 public:
  AsynchronousUpdates(const Schedule& schedule, const Program& program,
                      const UpdateOptions& options)
      : schedule_(schedule),
        program_(program),
        options_(options),
        draft_(program),
        collectives_(draft_, "collective") {}

  std::variant<Program, Deadlock> run() && {
    for (const auto& [update, writers] : find_updates()) add(update.second, writers);
    return std::move(draft_).finish();
  }

 private:
  Updates find_updates() const {
    const std::vector<std::vector<WeightUse>> uses = uses_of_computes();
    std::vector<std::size_t> next(static_cast<std::size_t>(program_.ranks), 0);
    Updates updates;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Instruction& instruction = program_.instructions[id];
      if (!is_compute(instruction.op.kind)) continue;
      const auto rank = static_cast<std::size_t>(instruction.rank);
      const WeightUse& use = uses[rank][next[rank]++];
      if (use.written)
        updates[{*use.written, instruction.op.stage}].push_back({instruction.rank, id});
    }
    return updates;
  }

  /// [rank]: the weight uses of compute ops, without those of copies.
  std::vector<std::vector<WeightUse>> uses_of_computes() const {
    std::vector<std::vector<WeightUse>> uses(schedule_.order.size());
    for (std::size_t rank = 0; rank < uses.size(); ++rank)
      for (std::size_t at = 0; at < schedule_.order[rank].size(); ++at)
        if (is_compute(schedule_.order[rank][at].kind))
          uses[rank].push_back(schedule_.weights[rank][at]);
    return uses;
  }

  void add(std::int32_t stage, const std::vector<Writer>& writers) {
    std::vector<InstructionId> awaited;
    if (options_.reduction != GradReduction::kNone || writers.size() > 1) {
      std::vector<CollectivePart> parts;
      for (const Writer& writer : writers)
        parts.push_back({{stage, 0, 0, OpKind::kReduceGrad}, writer.rank, {writer.op}});
      awaited = collectives_.add_together(parts);
    }
    for (std::size_t at = 0; at < writers.size(); ++at) {
      const auto [rank, op] = writers[at];
      draft_.add_after(
          op, {{stage, 0, 0, OpKind::kOptimizer}, static_cast<std::uint32_t>(rank), rank, rank});
      draft_.wait_for(awaited.empty() ? op : awaited[at]);
    }
  }

  const Schedule& schedule_;
  const Program& program_;
  const UpdateOptions& options_;
  ProgramDraft draft_;
  CollectiveLanes collectives_;
};

}  // namespace

std::variant<Program, Deadlock> lower_asynchronous_updates(const ValidSchedule& schedule,
                                                           const Program& program,
                                                           const UpdateOptions& options) {
  if (options.optimizer != OptimizerMode::kLocal || options.reduction == GradReduction::kSerial)
    throw Error(Fault::kProblem,
                schedule->name +
                    " updates its weights without flushes, separately on each rank; "
                    "ask for `optimizer` local, and no serial reduction");
  return AsynchronousUpdates(schedule, program, options).run();
}

}  // namespace bubblescope::inline sim
