// Builds the turns with copies.
#include "exec/calibration/copies_program.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/program_draft.h"
#include "sim/ir/recompute.h"

namespace bubblescope::exec {

namespace {

constexpr std::int32_t kQuietRounds = 3;  // per stage
constexpr std::int32_t kBusyRounds = 6;   // so many forwards and backwards run during a copy

class CopyTurns {
 public:
  explicit CopyTurns(const Schedule& schedule)
      : schedule_(schedule),
        draft_(schedule.shape.ranks, 0),
        lanes_(static_cast<std::size_t>(schedule.shape.ranks)) {}

  void add_quiet(std::int32_t stage) {
    const std::optional<std::int32_t> microbatch = find_microbatch(stage, 0);
    if (!microbatch) return;
    InstructionId last = add(stage, *microbatch, OpKind::kForward);
    wait_for_turn();
    for (const OpKind copy : {OpKind::kEvict, OpKind::kLoad}) {
      const InstructionId added = add(stage, *microbatch, copy);
      draft_.wait_for(last);
      last = added;
    }
    before_ = {add_backward(stage, *microbatch, last)};
  }

  /// On every device, ranks `first` to `first + busy - 1` compute, and the activations of rank
  /// `first` are copied.
  void add_busy(std::int32_t ranks_per_device, std::int32_t first, std::int32_t busy) {
    std::vector<InstructionId> ends;
    for (std::int32_t device = 0; device < schedule_.shape.ranks; device += ranks_per_device)
      for (std::int32_t at = 0; at < busy; ++at) {
        const std::int32_t rank = device + (first + at) % ranks_per_device;
        if (rank < schedule_.shape.ranks) ends.push_back(add_rank(rank, at == 0));
      }
    before_ = std::move(ends);
  }

  Program finish() && { return std::get<Program>(std::move(draft_).finish()); }

 private:
  InstructionId add_rank(std::int32_t rank, bool moves) {
    const std::int32_t stage = stage_of(rank);
    const std::int32_t moved = *find_microbatch(stage, 0);
    const std::int32_t other = *find_microbatch(stage, 1);
    InstructionId last = kNoInstruction;
    InstructionId copy = kNoInstruction;
    if (moves) {
      last = add(stage, moved, OpKind::kForward);
      wait_for_turn();
      for (const OpKind kind : {OpKind::kEvict, OpKind::kLoad}) {
        const InstructionId behind = kind == OpKind::kEvict ? last : copy;
        copy = add(stage, moved, kind);
        draft_.wait_for(behind);
      }
    }
    for (std::int32_t round = 0; round < kBusyRounds; ++round) {
      const InstructionId forward = add(stage, other, OpKind::kForward);
      if (!moves && round == 0) wait_for_turn();
      last = add_backward(stage, other, forward);
    }
    return moves ? add_backward(stage, moved, copy) : last;
  }

  InstructionId add_backward(std::int32_t stage, std::int32_t microbatch, InstructionId behind) {
    bool waits = true;
    if (recomputes(schedule_, stage)) {
      add(stage, microbatch, OpKind::kRecompute);
      draft_.wait_for(behind);
      waits = false;
    }
    const InstructionId added = add(stage, microbatch, OpKind::kBackward);
    if (waits) draft_.wait_for(behind);
    return added;
  }

  InstructionId add(std::int32_t stage, std::int32_t microbatch, OpKind kind) {
    const std::int32_t rank = schedule_.rank_of(stage, microbatch);
    const std::int32_t target_rank =
        schedule_.offload_target_of_rank[static_cast<std::size_t>(rank)];
    const bool copies = is_copy(kind);
    const std::uint32_t lane =
        copies ? lane_of(rank, target_rank, kind) : static_cast<std::uint32_t>(rank);
    return draft_.add({{stage, microbatch, 0, kind}, lane, rank, copies ? target_rank : rank});
  }

  std::uint32_t lane_of(std::int32_t rank, std::int32_t target_rank, OpKind kind) {
    std::optional<std::uint32_t>& lane =
        lanes_[static_cast<std::size_t>(rank)][kind == OpKind::kEvict ? 0 : 1];
    if (lane) return *lane;
    const std::string other = target_rank == rank ? "host" : "rank " + std::to_string(target_rank);
    lane = draft_.add_lane({rank, (kind == OpKind::kEvict ? "evict → " : "load ← ") + other});
    return *lane;
  }

  void wait_for_turn() {
    for (const InstructionId end : before_) draft_.wait_for(end);
  }

  std::int32_t stage_of(std::int32_t rank) const {
    const auto& ranks = schedule_.rank_of_stage;
    return static_cast<std::int32_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }

  /// Returns the first or second micro-batch of the stage.
  std::optional<std::int32_t> find_microbatch(std::int32_t stage, std::int32_t at) const {
    const std::int32_t pipeline = stage / schedule_.stages_per_pipeline();
    for (std::int32_t each = 0; each < schedule_.shape.microbatches; ++each)
      if (schedule_.pipeline_of_microbatch(each) == pipeline && at-- == 0) return each;
    return std::nullopt;
  }

  const Schedule& schedule_;
  ProgramDraft draft_;
  std::vector<std::array<std::optional<std::uint32_t>, 2>> lanes_;  ///< [rank]: evict, load
  std::vector<InstructionId> before_;  ///< the last instructions of the previous turn
};

}  // namespace

Program copies_program(const Schedule& schedule, std::int32_t max_busy) {
  CopyTurns turns(schedule);
  for (std::int32_t round = 0; round < kQuietRounds; ++round)
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) turns.add_quiet(stage);
  const bool has_busy_part = schedule.shape.microbatches >= 2 * schedule.pipelines;
  for (std::int32_t busy = 1; has_busy_part && busy <= max_busy; ++busy)
    for (std::int32_t first = 0; first < max_busy; ++first) turns.add_busy(max_busy, first, busy);
  return std::move(turns).finish();
}

}  // namespace bubblescope::exec
