// Schedules exported for other simulators take as long there as here. Every file is read and run by
// tests/support/foreign_replay, which shares no code with the program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/engine/simulate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/foreign_replay.h"
#include "tests/support/loggopsim_replay.h"
#include "tests/support/sanitized.h"
#include "traces/files/format.h"

namespace bubblescope::tests {
namespace {

/// A schedule with its costs, and everything else that an exporter needs.
struct Case {
  ValidSchedule schedule;
  Program program = {};
  Timing timing = {};

  traces::PricedSchedule priced() const { return {schedule, program, timing}; }
  Nanos makespan() const {
    const StepBounds bounds = find_step_bounds(simulate(program, timing).timeline);
    return bounds.end - bounds.start;
  }
};

/// F, I, W and the message all differ, so that no two orders take the same time by chance.
UniformCost uneven_cost(Nanos message) {
  UniformCost cost;
  cost.forward = 1'100'001;
  cost.input_grad = 1'300'003;
  cost.weight_grad = 700'007;
  cost.message = message;
  return cost;
}

/// Every request is tested, and every fifth under a sanitizer.
constexpr std::size_t kStride = kSanitized ? 5 : 1;

/// Every registered schedule in shapes of a few ranks, with and without latency of messages.
std::vector<std::pair<const ScheduleDef*, ScheduleRequest>> small_requests() {
  std::vector<std::pair<const ScheduleDef*, ScheduleRequest>> requests;
  std::size_t legal = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t ranks : {2, 4})
      for (const std::int32_t microbatches : {ranks, 2 * ranks + 2})
        for (const Nanos message : {0, 250'011}) {
          ScheduleRequest request;
          request.shape.ranks = ranks;
          request.shape.microbatches = microbatches;
          request.shape.chunks = def.implied_chunks.value_or(1);
          request.cost = uneven_cost(message);
          if (def.splits_output_layer) continue;  // these formats have no after edges
          if (def.refuse && !def.refuse(request).empty()) continue;
          if (legal++ % kStride == 0) requests.emplace_back(&def, request);
        }
  return requests;
}

/// The requests with and without gaps between ops, for all three kinds of overlap.
std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (const auto& [def, request] : small_requests()) {
    const ValidSchedule schedule = build_schedule(*def, request);
    for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused}) {
      const std::variant<Program, Deadlock> lowered = lower(schedule, {overlap});
      if (std::holds_alternative<Deadlock>(lowered)) continue;  // the pairs wait in a cycle
      for (const Nanos gap : {0, 90'007}) {
        Case& made = cases.emplace_back(Case{schedule});
        made.program = std::get<Program>(lowered);
        CostModel costs = spread(request.cost, schedule);
        costs.op_gap = gap;
        made.timing = {price(made.program, costs), price_gaps(made.program, costs)};
      }
    }
  }
  return cases;
}

/// Built once, because some schedules search for their order.
const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = small_cases();
  return cases;
}

std::vector<traces::FilePart> write(const std::string& format,
                                    const traces::PricedSchedule& priced) {
  return Registry<traces::ScheduleFormat>::instance().find(format)->write_priced(priced);
}

TEST(ForeignFormats, GoalTakesAsLongAsTheSimulation) {
  ASSERT_GT(all_cases().size(), 200u / kStride);
  for (const Case& one : all_cases()) {
    const std::vector<traces::FilePart> parts = write("goal", one.priced());
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(replay_makespan(read_goal(parts[0].content)), one.makespan()) << one.schedule->name;
  }
}

Case one_f_one_b(const LowerOptions& options = {}) {
  const ScheduleDef& def = find_schedule("1f1b");
  ScheduleRequest request;
  request.shape.ranks = 2;
  request.shape.microbatches = 2;
  Case made{build_schedule(def, request)};
  made.program = std::get<Program>(lower(made.schedule, options));
  made.timing.durations = price(made.program, spread(uneven_cost(5), made.schedule));
  return made;
}

/// Whether a rank runs ops beside its compute ops, such as copies.
bool has_other_lanes(const Case& one) {
  std::vector<std::int32_t> lanes(static_cast<std::size_t>(one.program.ranks), 0);
  for (const Lane& lane : one.program.lanes)
    if (++lanes[static_cast<std::size_t>(lane.rank)] > 1) return true;
  return false;
}

TEST(ForeignFormats, GoalOnOneCpuTakesAsLongInTheOriginalLogGopSim) {
  std::size_t compared = 0;
  std::size_t wrong_on_several = 0;
  for (const Case& one : all_cases()) {
    const auto run = [&](const char* format) {
      return replay_on_loggopsim(read_goal(write(format, one.priced())[0].content));
    };
    if (has_other_lanes(one)) {
      EXPECT_TRUE(fails_with([&] { write("goal-one-cpu", one.priced()); },
                             "goal-one-cpu has one cpu per rank, but "))
          << one.schedule->name;
      continue;
    }
    EXPECT_EQ(run("goal-one-cpu"), one.makespan()) << one.schedule->name;
    wrong_on_several += run("goal") == one.makespan() ? 0 : 1;
    ++compared;
  }
  EXPECT_GT(compared, 200u / kStride);
  EXPECT_GT(wrong_on_several, compared / 2);  // which is why there are two formats
}

TEST(ForeignFormats, GoalPostsReceivesLate) {
  // A receive requires the op before its consumer, so at most one per lane is posted at a time.
  // Only the first op of a rank has none before it.
  const Case one = one_f_one_b();
  for (const char* format : {"goal", "goal-one-cpu"}) {
    std::size_t at_once = 0;
    for (const std::vector<ForeignJob>& jobs : read_goal(write(format, one.priced())[0].content))
      for (const ForeignJob& job : jobs)
        if (job.kind == ForeignJob::Kind::kReceive && job.waits_for.empty()) ++at_once;
    EXPECT_EQ(at_once, 1u) << format;  // 1F0's
  }
}

TEST(ForeignFormats, ChakraTakesAsLongAsTheSimulation) {
  for (const Case& one : all_cases()) {
    const std::vector<traces::FilePart> parts = write("chakra", one.priced());
    std::vector<std::string> files;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      EXPECT_EQ(parts[rank].suffix, "." + std::to_string(rank) + ".et");
      files.push_back(parts[rank].content);
    }
    EXPECT_EQ(replay_makespan(read_chakra(files)), one.makespan()) << one.schedule->name;
  }
}

TEST(ForeignFormats, AnExportNoticesALostDependency) {
  // Without its first "requires" rank 1 would not wait for a message, and the replay would be
  // shorter.
  const Case one = one_f_one_b();
  std::string text = write("goal", one.priced())[0].content;
  const std::size_t requires_at = text.find(" requires ", text.find("\nrank 1 {"));
  ASSERT_NE(requires_at, text.npos);
  const std::size_t begin = text.rfind('\n', requires_at);
  text.erase(begin, text.find('\n', requires_at) - begin);
  EXPECT_LT(replay_makespan(read_goal(text)), one.makespan());
}

TEST(ForeignFormats, RefuseWhatTheirSimulatorsDecideThemselves) {
  const Case posted = one_f_one_b({.mode = P2pMode::kFifo});
  EXPECT_EQ(error_of([&] { write("goal", posted.priced()); }),
            "goal has no place for the posting of 0SEND_F0 on rank 0: its simulator has rules of "
            "its own; leave `p2p_mode` out");
  EXPECT_EQ(error_of([&] { write("chakra", posted.priced()); }),
            "chakra has no place for the posting of 0SEND_F0 on rank 0: its simulator has rules "
            "of its own; leave `p2p_mode` out");
  Case uneven = one_f_one_b();
  for (InstructionId id = 0; id < uneven.program.size(); ++id)
    if (is_message(uneven.program.instructions[id])) uneven.timing.durations[id] += id;
  EXPECT_EQ(error_of([&] { write("goal", uneven.priced()); }),
            "goal has one latency for all messages, but these differ by link; give `p2p`, or a "
            "cost file with one message time");
  EXPECT_NO_THROW(write("chakra", uneven.priced()));
}

}  // namespace
}  // namespace bubblescope::tests
