// Makes instructions of the posted collectives, one rank's cells after another's.
#include "sim/ir/lower_collectives.h"

#include <optional>
#include <utility>
#include <vector>

#include "sim/ir/collective_lanes.h"
#include "sim/ir/error.h"
#include "sim/ir/posted_kinds.h"

namespace bubblescope::inline sim {

namespace {

class PostedCollectives {
 public:
  PostedCollectives(const Schedule& schedule, const Program& program, bool gathers_in_place)
      : schedule_(schedule),
        gathers_in_place_(gathers_in_place),
        computes_(static_cast<std::size_t>(program.ranks)),
        stages_(static_cast<std::size_t>(schedule.stages())),
        draft_(program),
        unshards_(draft_, "unshard"),
        collectives_(draft_, "collective") {
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (is_compute(instruction.op.kind))
        computes_[static_cast<std::size_t>(instruction.rank)].push_back(id);
    }
  }

  std::variant<Program, Deadlock> run() && {
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) walk(rank);
    return std::move(draft_).finish();
  }

 private:
  /// The state of a stage on the current rank.
  struct StageCells {
    std::optional<InstructionId> unshard;  ///< that no op has waited for yet
    std::optional<InstructionId> last_op;
    std::vector<InstructionId> gradients;  ///< since the last reduction
    std::optional<InstructionId> reduction;
  };

  void walk(std::int32_t rank) {
    for (const Op& op : schedule_.posted[static_cast<std::size_t>(rank)])
      if (op.stage >= 0) stages_[static_cast<std::size_t>(op.stage)] = {};
    awaited_.clear();
    last_compute_.reset();
    auto next_compute = computes_[static_cast<std::size_t>(rank)].begin();
    for (const Op& op : schedule_.posted[static_cast<std::size_t>(rank)]) {
      if (is_compute(op.kind))
        pass(op, *next_compute++);
      else if (is_collective(op.kind))
        add(op, rank);
      else if (op.kind == OpKind::kWaitReduceGrad)
        wait(op);
    }
  }

  void wait(const Op& op) {
    const auto& reduction = stages_[static_cast<std::size_t>(op.stage)].reduction;
    if (!reduction)
      throw Error(Fault::kProblem, to_string(op) + " is before its REDUCE_GRAD; move it after");
    awaited_.push_back(*reduction);
  }

  void pass(const Op& op, InstructionId id) {
    StageCells& cells = stages_[static_cast<std::size_t>(op.stage)];
    for (const InstructionId reduction : awaited_) draft_.add_dependency(id, reduction);
    awaited_.clear();
    if (cells.unshard) draft_.add_dependency(id, *std::exchange(cells.unshard, std::nullopt));
    cells.last_op = last_compute_ = id;
    if (makes_weight_grad(op.kind)) cells.gradients.push_back(id);
  }

  void add(const Op& op, std::int32_t rank) {
    StageCells& cells = stages_[static_cast<std::size_t>(op.stage)];
    CollectivePart part{op, rank, {}};
    if (op.kind == OpKind::kReduceGrad) {
      part.awaited = std::exchange(cells.gradients, {});
      cells.reduction = collectives_.add(part, Role::kWork);
      return;
    }
    if (op.kind == OpKind::kReshard && cells.last_op) part.awaited = {*cells.last_op};
    if (op.kind == OpKind::kUnshard && gathers_in_place_ && last_compute_)
      part.awaited = {*last_compute_};
    const InstructionId id = unshards_.add(part, Role::kWork);
    if (op.kind == OpKind::kUnshard) cells.unshard = id;
  }

  const Schedule& schedule_;
  bool gathers_in_place_;
  std::vector<std::vector<InstructionId>> computes_;  ///< [rank], in order
  std::vector<StageCells> stages_;                    ///< [stage]
  std::optional<InstructionId> last_compute_;         ///< of the current rank
  std::vector<InstructionId> awaited_;  ///< reductions that the rank's next compute op waits for
  ProgramDraft draft_;
  CollectiveLanes unshards_;
  CollectiveLanes collectives_;
};

}  // namespace

bool posts_collectives(const Schedule& schedule) { return posts_any(schedule, is_collective); }

bool posts_kind(const Schedule& schedule, OpKind kind) {
  return posts_any(schedule, [kind](OpKind posted) { return posted == kind; });
}

std::variant<Program, Deadlock> lower_collectives(const ValidSchedule& schedule,
                                                  const Program& program, bool gathers_in_place) {
  return PostedCollectives(schedule, program, gathers_in_place).run();
}

}  // namespace bubblescope::inline sim
