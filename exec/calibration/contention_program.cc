// Builds the turns of the Program.
#include "exec/calibration/contention_program.h"

#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/program_draft.h"
#include "sim/ir/recompute.h"

namespace bubblescope::exec {

namespace {

constexpr std::int32_t kRounds = 3;         // a stage runs so often within a turn
constexpr std::int32_t kQuietMessages = 4;  // per stage, while no rank computes

struct StageOps {
  std::int32_t stage = 0;
  bool recomputes = false;
  std::vector<std::int32_t> microbatches;  ///< one or two micro-batches of the stage
};

class Turns {
 public:
  explicit Turns(const Schedule& schedule)
      : schedule_(schedule),
        draft_(schedule.shape.ranks, 0),
        stages_(static_cast<std::size_t>(schedule.shape.ranks)) {
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      stages_[static_cast<std::size_t>(schedule.rank_of_stage[static_cast<std::size_t>(stage)])]
          .push_back(ops_of(schedule, stage));
  }

  /// Adds a turn in which these ranks run side by side; it follows all earlier turns.
  void add(const std::vector<std::int32_t>& ranks) {
    std::vector<InstructionId> ends;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      is_first_ = true;
      for (std::int32_t round = 0; round < kRounds; ++round)
        for (const StageOps& stage : stages_[static_cast<std::size_t>(ranks[at])]) {
          if (!is_first_) add_message(stage, {draft_.size() - 1});
          add_round(ranks[at], stage, static_cast<std::int32_t>(at) + round);
        }
      if (!is_first_) ends.push_back(draft_.size() - 1);
    }
    before_ = std::move(ends);
  }

  /// Adds one message at a time, after all turns.
  void add_quiet_messages() {
    for (std::int32_t round = 0; round < kQuietMessages; ++round)
      for (const std::vector<StageOps>& of_rank : stages_)
        for (const StageOps& stage : of_rank)
          if (add_message(stage, before_)) before_ = {draft_.size() - 1};
  }

  Program finish() && { return std::get<Program>(std::move(draft_).finish()); }

 private:
  static StageOps ops_of(const Schedule& schedule, std::int32_t stage) {
    StageOps ops{stage, recomputes(schedule, stage), {}};
    const std::int32_t pipeline = stage / schedule.stages_per_pipeline();
    for (std::int32_t at = 0; at < schedule.shape.microbatches && ops.microbatches.size() < 2; ++at)
      if (schedule.pipeline_of_microbatch(at) == pipeline) ops.microbatches.push_back(at);
    return ops;
  }

  /// Adds the message from the stage to its neighbour after these ops; none if that is on the same
  /// rank.
  bool add_message(const StageOps& stage, const std::vector<InstructionId>& behind) {
    const std::int32_t microbatch = stage.microbatches[0];
    const std::int32_t rank = schedule_.rank_of(stage.stage, microbatch);
    const bool last = schedule_.is_last(stage.stage);
    if (last && (schedule_.is_first(stage.stage) || schedule_.forward_only)) return false;
    const std::int32_t peer = schedule_.rank_of(stage.stage + (last ? -1 : 1), microbatch);
    if (peer == rank) return false;
    const OpKind kind = last ? OpKind::kSendBackward : OpKind::kSendForward;
    draft_.add({{stage.stage, microbatch, 0, kind}, kNoLane, rank, peer});
    for (const InstructionId before : behind) draft_.wait_for(before);
    return true;
  }

  /// Adds a split and a full backward, in one of three orders.
  void add_round(std::int32_t rank, const StageOps& stage, std::int32_t variant) {
    using enum OpKind;
    const auto put = [&](std::size_t microbatch, std::initializer_list<OpKind> kinds) {
      for (const OpKind kind : kinds)
        if (kind != kRecompute || stage.recomputes)
          add_op(rank, {stage.stage, stage.microbatches[microbatch], 0, kind});
    };
    if (variant % 3 == 2 && stage.microbatches.size() == 2) {
      put(0, {kForward});
      put(1, {kForward});
      put(0, {kRecompute, kInputGrad});
      put(1, {kRecompute, kBackward});
      return put(0, {kWeightGrad});
    }
    if (variant % 3 == 1) put(0, {kForward, kRecompute, kBackward});
    put(0, {kForward, kRecompute, kInputGrad, kWeightGrad});
    if (variant % 3 != 1) put(0, {kForward, kRecompute, kBackward});
  }

  void add_op(std::int32_t rank, const Op& op) {
    draft_.add({op, static_cast<std::uint32_t>(rank), rank, rank});
    if (std::exchange(is_first_, false))
      for (const InstructionId end : before_) draft_.wait_for(end);
  }

  const Schedule& schedule_;
  ProgramDraft draft_;
  std::vector<std::vector<StageOps>> stages_;  ///< [rank]
  std::vector<InstructionId> before_;          ///< the last ops of the previous turn
  bool is_first_ = true;                       ///< no op of this rank has been added in this turn
};

}  // namespace

Program contention_program(const Schedule& schedule, std::int32_t ranks_per_device) {
  const std::int32_t ranks = schedule.shape.ranks;
  Turns turns(schedule);
  for (std::int32_t busy = 1; busy <= ranks_per_device; ++busy)
    for (std::int32_t first = 0; first < ranks_per_device; first += busy) {
      std::vector<std::int32_t> members;
      for (std::int32_t device = 0; device < ranks; device += ranks_per_device)
        for (std::int32_t at = first; at < first + busy; ++at)
          if (const std::int32_t rank = device + at % ranks_per_device; rank < ranks)
            members.push_back(rank);
      turns.add(members);
    }
  turns.add_quiet_messages();
  return std::move(turns).finish();
}

}  // namespace bubblescope::exec
