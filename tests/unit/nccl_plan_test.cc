// The plan of each rank of the backend nccl. Together the plans contain the whole Program, both
// ends of every link have the same order, and transfers that wait for their peers do not deadlock.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "exec/nccl/rank_plan.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

using Plans = std::vector<exec::RankPlan>;

Plans plan_all(const Program& program) {
  Plans plans;
  for (std::int32_t rank = 0; rank < program.ranks; ++rank)
    plans.push_back(exec::plan_rank(program, rank));
  return plans;
}

/// Simulates NCCL. A stream is a queue, and a transfer completes when both of its ends are at the
/// head of their streams.
class Wire {
 public:
  explicit Wire(const Plans& plans) : plans_(plans) {
    for (const exec::RankPlan& plan : plans) {
      done_.emplace_back(plan.program.size(), false);
      started_.emplace_back(plan.program.size(), false);
    }
  }

  /// Returns whether all instructions complete.
  bool runs() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t rank = 0; rank < plans_.size(); ++rank) moves = advance(rank) || moves;
    }
    return std::all_of(done_.begin(), done_.end(), [](const std::vector<bool>& done) {
      return std::all_of(done.begin(), done.end(), [](bool is) { return is; });
    });
  }

 private:
  bool advance(std::size_t rank) {
    const Program& program = plans_[rank].program;
    std::vector<bool> is_busy(program.lanes.size(), false);
    bool moves = false;
    for (InstructionId id = 0; id < program.size(); ++id) {
      if (done_[rank][id]) continue;
      const std::uint32_t lane = program.instructions[id].lane;
      const auto dependencies = program.dependencies_of(id);
      const bool starts =
          !is_busy[lane] && std::all_of(dependencies.begin(), dependencies.end(),
                                        [&](InstructionId other) { return done_[rank][other]; });
      is_busy[lane] = true;
      if (!starts) continue;
      if (!started_[rank][id]) moves = true;
      started_[rank][id] = true;
      if (!is_through(rank, id)) continue;
      done_[rank][id] = moves = true;
      is_busy[lane] = false;
    }
    return moves;
  }

  bool is_through(std::size_t rank, InstructionId id) const {
    const auto& transfers = plans_[rank].transfers[id];
    return std::all_of(transfers.begin(), transfers.end(), [&](const exec::PlannedTransfer& own) {
      const exec::PlannedTransfer other{own.id, !own.sends, static_cast<std::int32_t>(rank),
                                        own.link_kind};
      const exec::RankPlan& peer = plans_[static_cast<std::size_t>(own.peer)];
      for (InstructionId at = 0; at < peer.program.size(); ++at)
        if (std::count(peer.transfers[at].begin(), peer.transfers[at].end(), other) != 0)
          return bool{started_[static_cast<std::size_t>(own.peer)][at]};
      return false;
    });
  }

  const Plans& plans_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::vector<bool>> started_;
};

/// [sender, receiver, kind]: the transfers of a link, in order.
using Sequences =
    std::map<std::tuple<std::int32_t, std::int32_t, exec::LinkKind>, std::vector<InstructionId>>;

/// The transfers of each directed link, in the order at one of its ends.
Sequences sequences_of(const Plans& plans, bool sends) {
  Sequences all;
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(plans.size()); ++rank)
    for (const auto& transfers : plans[static_cast<std::size_t>(rank)].transfers)
      for (const exec::PlannedTransfer& transfer : transfers)
        if (transfer.sends == sends)
          all[{sends ? rank : transfer.peer, sends ? transfer.peer : rank, transfer.link_kind}]
              .push_back(transfer.id);
  return all;
}

/// Whether the instruction is a message, or a copy to another rank or back.
bool crosses(const Instruction& instruction) {
  return is_message(instruction) ||
         (is_copy(instruction.op.kind) && instruction.peer != instruction.rank);
}

void expect_sound(const Program& program) {
  const Plans plans = plan_all(program);
  const Sequences sent = sequences_of(plans, true);
  EXPECT_EQ(sent, sequences_of(plans, false));
  std::size_t messages = 0;
  for (const auto& [link, ids] : sent)
    for (const InstructionId id : ids) messages += crosses(program.instructions[id]);
  EXPECT_EQ(messages, static_cast<std::size_t>(std::count_if(program.instructions.begin(),
                                                             program.instructions.end(), crosses)));
  std::size_t others = 0;
  for (const exec::RankPlan& plan : plans)
    others += static_cast<std::size_t>(std::count_if(plan.transfers.begin(), plan.transfers.end(),
                                                     [](const auto& one) { return one.empty(); }));
  EXPECT_EQ(others + messages, program.size());
  EXPECT_TRUE(Wire(plans).runs());
}

TEST(NcclPlan, OfTwoRanksHasALanePerDirectedLink) {
  const Program program = std::get<Program>(lower(build("1f1b", 2, 1)));
  const Plans plans = plan_all(program);
  // Rank 0 has 0F0, a send of its output, a receive of its gradient, and 0B0.
  ASSERT_EQ(plans[0].program.size(), 4u);
  EXPECT_EQ(plans[0].program.lanes[0].name, "compute");
  EXPECT_EQ(plans[0].program.lanes[1].name, "0>1");
  EXPECT_EQ(plans[0].program.lanes[2].name, "1>0");
  EXPECT_TRUE(plans[0].transfers[1][0].sends);
  EXPECT_EQ(plans[0].transfers[2][0].peer, 1);
  EXPECT_EQ(plans[0].links, (std::vector<exec::PlannedLink>{{0, 1}, {1, 0}}));
  EXPECT_EQ(plans[0].links, plans[1].links);
  // 0B0 waits for the receive, and the send waits for 0F0.
  EXPECT_EQ(plans[0].program.dependencies_of(3).back(), 2u);
  EXPECT_EQ(plans[0].program.dependencies_of(1)[0], 0u);
}

TEST(NcclPlan, IsTheProgramAndGetsThroughInEveryScheduleAndMode) {
  int sound = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Named<P2pMode>& mode : kP2pModes) {
      SCOPED_TRACE(def.name + " " + std::string(mode.name));
      LowerOptions options;
      options.mode = mode.choice;
      try {
        const auto lowered = lower(build_schedule(def, {{3, 1, 6, 1, {}}, {}, {}}), options);
        if (std::holds_alternative<Deadlock>(lowered)) continue;
        expect_sound(std::get<Program>(lowered));
        ++sound;
      } catch (const Error&) {  // the schedule does not support this shape
      }
    }
  EXPECT_GE(sound, 80);
}

// Tokens of after edges and groups of messages share a link, on which both ends need one order.
TEST(NcclPlan, RefusesAfterEdgesBesideGroups) {
  LowerOptions options;
  options.mode = P2pMode::kBatched;
  const Program program = std::get<Program>(
      lower(build_schedule(find_schedule("1f1b-vocab"), {{3, 1, 6, 1, {}}, {}, {}}), options));
  EXPECT_TRUE(fails_with([&] { plan_all(program); }, "(after edge), which NCCL cannot order"));
}

// Rank 0 of four offloads to rank 3. Its copies stay in their own lanes, and rank 3 has lanes for
// them apart from those of messages.
TEST(NcclPlan, OffloadTargetsHaveLanesForTheirCopies) {
  const Schedule schedule = build("bpipe", 4, 8);
  ASSERT_EQ(schedule.offload_target_of_rank[0], 3);
  const Program program = std::get<Program>(lower(schedule));
  expect_sound(program);
  const Plans plans = plan_all(program);
  std::map<std::string, int> copies;
  for (const std::size_t rank : {0u, 3u})
    for (InstructionId id = 0; id < plans[rank].program.size(); ++id) {
      const Instruction& at = plans[rank].program.instructions[id];
      if (is_copy(at.op.kind)) ++copies[plans[rank].program.lanes[at.lane].name];
    }
  EXPECT_GT(copies.at("0>3 evicted"), 0);
  EXPECT_EQ(copies.at("0>3 evicted"), copies.at("3>0 loaded"));
  EXPECT_EQ(copies.at("0>3 evicted"), copies.at("evict → rank 3"));
  EXPECT_EQ(copies.at("3>0 loaded"), copies.at("load ← rank 3"));
  EXPECT_EQ(copies.size(), 4u);
}

// Activations are received before they are sent back, and the sending end of a LOAD waits for that.
TEST(NcclPlan, WhatIsLoadedWasKept) {
  const Program program = std::get<Program>(lower(build("bpipe", 4, 8)));
  const exec::RankPlan target_plan = exec::plan_rank(program, 3);
  std::map<std::pair<std::int32_t, std::int32_t>, InstructionId> kept;
  int loads = 0;
  for (InstructionId id = 0; id < target_plan.program.size(); ++id) {
    const Op& op = target_plan.program.instructions[id].op;
    if (op.kind == OpKind::kEvict) kept[{op.stage, op.microbatch}] = id;
    if (op.kind != OpKind::kLoad) continue;
    const auto awaited = target_plan.program.dependencies_of(id);
    EXPECT_EQ(std::count(awaited.begin(), awaited.end(), kept.at({op.stage, op.microbatch})), 1);
    ++loads;
  }
  EXPECT_GT(loads, 0);
}

TEST(NcclPlan, BatchedNeighboursAreOneGroup) {
  LowerOptions options;
  options.mode = P2pMode::kBatched;
  const Program program = std::get<Program>(lower(build("1f1b", 4, 8), options));
  const Plans plans = plan_all(program);
  EXPECT_TRUE(plans[0].links.empty());
  std::size_t largest = 0;
  for (const exec::RankPlan& plan : plans)
    for (InstructionId id = 0; id < plan.program.size(); ++id) {
      EXPECT_EQ(plan.is_group[id], !plan.transfers[id].empty());
      largest = std::max(largest, plan.transfers[id].size());
    }
  EXPECT_GT(largest, 1u);
}

TEST(NcclPlan, OtherModesSendEveryMessageAlone) {
  for (const Named<P2pMode>& mode : kP2pModes) {
    if (mode.choice == P2pMode::kBatched) continue;
    LowerOptions options;
    options.mode = mode.choice;
    const auto lowered = lower(build("1f1b", 4, 8), options);
    if (std::holds_alternative<Deadlock>(lowered)) continue;
    for (const exec::RankPlan& plan : plan_all(std::get<Program>(lowered)))
      for (InstructionId id = 0; id < plan.program.size(); ++id) {
        EXPECT_FALSE(plan.is_group[id]) << mode.name;
        EXPECT_LE(plan.transfers[id].size(), 1u) << mode.name;
      }
  }
}

TEST(NcclPlan, CollectivesWaitForOtherRanksByTokens) {
  LowerOptions options;
  options.update = {OptimizerMode::kBarrier, GradReduction::kNone};
  const Program program = std::get<Program>(lower(build("1f1b", 3, 6), options));
  expect_sound(program);
  // The norm is summed when all 3 ranks have posted: 2 ranks notify rank 0, which notifies 2.
  std::size_t tokens = 0;
  for (const auto& [link, ids] : sequences_of(plan_all(program), true))
    for (const InstructionId id : ids)
      tokens += program.instructions[id].op.kind == OpKind::kNorm ? 1u : 0u;
  EXPECT_EQ(tokens, 4u);
}

TEST(NcclPlan, SplitsHoldEveryGroupOnceAndNoRankTwice) {
  const std::vector<exec::RankGroup> groups{{0, 1}, {0, 1}, {1, 2}, {2, 3}, {0, 3}, {0, 1, 2, 3}};
  // {0,1} shares a split with {2,3}. The other {0,1} has one alone; {0,3} and {1,2} take a third.
  const auto splits = exec::plan_splits(groups);
  std::vector<int> seen(groups.size(), 0);
  for (const auto& split : splits) {
    std::vector<int> ranks(4, 0);
    for (const std::size_t group : split) {
      ++seen[group];
      for (const std::int32_t rank : groups[group]) ++ranks[static_cast<std::size_t>(rank)];
    }
    EXPECT_LE(*std::max_element(ranks.begin(), ranks.end()), 1);
  }
  EXPECT_EQ(seen, std::vector<int>(groups.size(), 1));
  EXPECT_EQ(splits.size(), 4u);
}

}  // namespace
}  // namespace bubblescope::tests
