// Stage graphs: what waits for what, how files state them, what is refused.
#include "sim/ir/stage_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "exec/training/expect_trainable.h"
#include "sim/engine/simulate.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/order_cycle.h"
#include "sim/ir/registry.h"
#include "sim/ir/validate.h"
#include "sim/model/cost_model.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/verified_training.h"
#include "traces/files/format.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// Two encoders on ranks 0 and 1, and on rank 2 the stage that reads both.
Schedule two_encoders() {
  Schedule schedule = traces::parse_schedule_text("0F0 0B0 | 1F0 1B0 | 2F0 2B0");
  schedule.name = "encoders";
  schedule.graph = StageGraph({{}, {}, {0, 1}});
  return schedule;
}

/// Stage 0 on rank 0, and on rank 1 two prediction heads that read it.
Schedule two_heads() {
  Schedule schedule = traces::parse_schedule_text("0F0 0B0 | 1F0 2F0 2B0 1B0");
  schedule.name = "heads";
  schedule.rank_of_stage = {0, 1, 1};
  schedule.shape.chunks = 2;
  schedule.graph = StageGraph({{}, {0}, {0}});
  return schedule;
}

std::string end_times(const Schedule& schedule, const LowerOptions& options = {}) {
  const Program program = std::get<Program>(lower(schedule, options));
  UniformCost cost;
  cost.message = 100'000;
  cost.per = UniformCost::Per::kChunk;
  const Timeline timeline = simulate(program, spread(cost, schedule));
  std::string text;
  for (InstructionId id = 0; id < program.size(); ++id)
    if (is_compute(program.instructions[id].op.kind))
      text += to_string(program.instructions[id].op) + " " +
              std::to_string(timeline.end[id] / 100'000) + "; ";
  return text;
}

TEST(StageGraph, BeginsWhereNothingIsReadAndEndsWhereNothingReads) {
  const Schedule encoders = two_encoders();
  EXPECT_TRUE(encoders.is_first(0) && encoders.is_first(1) && !encoders.is_first(2));
  EXPECT_TRUE(!encoders.is_last(0) && !encoders.is_last(1) && encoders.is_last(2));
  const Schedule heads = two_heads();
  EXPECT_TRUE(heads.is_first(0) && !heads.is_first(1) && !heads.is_first(2));
  EXPECT_TRUE(!heads.is_last(0) && heads.is_last(1) && heads.is_last(2));
}

// F 1, B 2 ms, messages 0.1: both encoders end at 1, 2F0 runs to 2.1 and 2B0 to 4.1; its gradient
// lets both go on to 6.2.
TEST(StageGraph, MakesAStageWaitForAllItsInputs) {
  const std::string times = end_times(two_encoders());
  for (const char* expected : {"0F0 10;", "1F0 10;", "2F0 21;", "2B0 41;", "0B0 62;", "1B0 62;"})
    EXPECT_NE(times.find(expected), std::string::npos) << times;
}

// One message takes 0F0 to rank 1, for both heads; 0B0 waits for the gradients of both, 2B0 until
// 1.1 + 2 + 2 and 1B0 until 7.1.
TEST(StageGraph, SendsAnOutputOnceToEachRankAndWaitsForAllGradients) {
  const std::string times = end_times(two_heads());
  for (const char* expected : {"0F0 10;", "1F0 21;", "2F0 31;", "2B0 51;", "1B0 71;", "0B0 92;"})
    EXPECT_NE(times.find(expected), std::string::npos) << times;
  const Program program = lower_or_throw(two_heads());
  EXPECT_EQ(std::count_if(program.instructions.begin(), program.instructions.end(),
                          [](const Instruction& one) { return is_message(one); }),
            3);  // 0F0, 1B0 and 2B0
}

TEST(StageGraph, PostsItsMessagesInEveryMode) {
  for (const Schedule& schedule : {two_encoders(), two_heads()}) {
    for (const Named<P2pMode>& mode : kP2pModes) {
      LowerOptions options;
      options.mode = mode.choice;
      const std::string times = end_times(schedule, options);
      EXPECT_NE(times.find("2F0"), std::string::npos) << mode.name;
    }
    for (const ModeVerdict& verdict : check_modes(schedule))
      EXPECT_FALSE(verdict.deadlock) << to_string(verdict.mode, 1);
  }
  // A RECV has the stage whose value it receives: rank 2 has one of each encoder.
  const std::vector<RankOrder> lists = post_messages(two_encoders());
  EXPECT_EQ(order_text(lists[2]), "0RECV_F0 1RECV_F0 2F0 2B0 2SEND_B0 2SEND_B0");
  EXPECT_EQ(order_text(lists[0]), "0F0 0SEND_F0 2RECV_B0 0B0");
}

TEST(StageGraph, DeadlocksAreFoundAndNamed) {
  Schedule schedule = two_encoders();
  schedule.rank_of_stage = {0, 1, 0};
  schedule.shape.ranks = 2;
  schedule.shape.chunks = 2;
  schedule.order = traces::parse_schedule_text("2F0 2B0 0F0 0B0 | 1F0 1B0").order;
  const Problems problems = validate(schedule);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(to_string(problems[0]).find("rank 0 at 2F0 waits for 0F0"), std::string::npos)
      << to_string(problems[0]);
}

struct Case {
  const char* name;
  StageLists inputs;
  const char* says;
};

TEST(StageGraph, ThatIsNoneIsAProblem) {
  const Case cases[] = {
      {"itself", {{}, {1}, {0}}, "stage 1 has the input 1; its inputs are earlier stages"},
      {"later", {{1}, {}, {0}}, "stage 0 has the input 1; its inputs are earlier stages"},
      {"twice", {{}, {}, {0, 0}}, "stage 2 has the input 0"},
      {"descending", {{}, {}, {1, 0}}, "stage 2 has the input 0"},
      {"negative", {{}, {}, {-1}}, "stage 2 has the input -1"},
      {"too few", {{}, {0}}, "the inputs of 2 stages, and the placement 3"},
  };
  for (const Case& test : cases) {
    Schedule schedule = two_encoders();
    schedule.graph = StageGraph(test.inputs);
    const Problems problems = validate(schedule);
    ASSERT_FALSE(problems.empty()) << test.name;
    EXPECT_NE(to_string(problems[0]).find(test.says), std::string::npos) << to_string(problems[0]);
  }
  Schedule two_pipelines = traces::parse_schedule_text("0F0 0B0 2F1 2B1 | 1F0 1B0 3F1 3B1");
  two_pipelines.rank_of_stage = {0, 1, 0, 1};
  two_pipelines.pipelines = 2;
  two_pipelines.graph = StageGraph({{}, {0}, {}, {2}});
  EXPECT_NE(to_string(validate(two_pipelines)[0]).find("needs one pipeline"), std::string::npos);
  Schedule posted = two_encoders();
  posted.posted = post_messages(posted);
  EXPECT_NE(to_string(validate(posted)[0]).find("posted messages need stages in a chain"),
            std::string::npos);
}

TEST(StageGraph, ComesBackFromTheNativeFormat) {
  const Schedule schedule = two_encoders();
  const std::string text = traces::write_native_schedule(schedule);
  EXPECT_NE(text.find("\"inputs\":[[],[],[0,1]]"), std::string::npos) << text;
  EXPECT_TRUE(traces::read_native_schedule(text, "f.json") == schedule);
  const auto read = [&](const std::string& inputs) {
    std::string changed = text;
    const std::string written = "[[],[],[0,1]]";
    changed.replace(changed.find(written), written.size(), inputs);
    return error_of([&] { traces::read_native_schedule(changed, "f.json"); });
  };
  EXPECT_NE(read("[[],[]]").find("f.json: /inputs: has 2 entries for 3 stages"), std::string::npos);
  EXPECT_NE(read("[[],[],[3]]").find("/inputs/2/0"), std::string::npos);
  EXPECT_NE(read("[[],[],0]").find("/inputs/2"), std::string::npos);
}

TEST(StageGraph, IsRefusedByFormatsWithoutIt) {
  for (const char* name : {"pytorch-csv", "text", "deepspeed"}) {
    const auto* const format = Registry<traces::ScheduleFormat>::instance().find(name);
    const std::string error = error_of([&] { format->write(two_encoders()); });
    EXPECT_NE(error.find("stages that are not a chain"), std::string::npos)
        << name << ": " << error;
  }
}

TEST(StageGraph, IsRefusedWhereListsKnowOneReceiver) {
  LowerOptions options;
  options.mode = P2pMode::kFifo;
  options.posting = ReceivePosting::kDeferred;
  EXPECT_TRUE(fails_with([&] { lower(two_heads(), options); }, "`lowering` deferred needs stages"));
  options.posting = ReceivePosting::kAsap;
  options.send_budget = 1;
  EXPECT_TRUE(fails_with([&] { lower(two_heads(), options); }, "`send_budget` needs stages"));
  EXPECT_FALSE(find_order_cycle(two_heads()));
}

// As with multi-token prediction: the second of two last stages predicts the token after the next.
TEST(StageGraph, PredictsTheLastHeadFurtherAhead) {
  const exec::TrainingOptions options = small_model();
  EXPECT_EQ(exec::plan_of(two_heads(), options, 1).form().ahead, 1);
  EXPECT_EQ(exec::plan_of(two_heads(), options, 2).form().ahead, 2);
  const exec::Tokens tokens = exec::make_tokens(options, 0, 0);
  const exec::Tokens ahead = exec::look_ahead(tokens, options, 2);
  EXPECT_EQ(ahead.inputs, tokens.inputs);
  for (std::size_t at = 0; at + 1 < tokens.targets.size(); ++at)
    EXPECT_EQ(ahead.targets[at], tokens.targets[at + 1]);
}

// Shards of a split output layer must read the end of a chain.
TEST(StageGraph, OfSideStagesTrainsOnlyShards) {
  Schedule schedule = two_heads();
  schedule.side_stages = 2;
  EXPECT_EQ(error_of([&] { exec::expect_trainable(schedule, small_model()); }), "");
  schedule.graph = StageGraph({{}, {0}, {1}});
  EXPECT_TRUE(fails_with([&] { exec::expect_trainable(schedule, small_model()); },
                         "trained only as shards of the output layer"));
  exec::TrainingOptions tiny = small_model();
  tiny.model.vocabulary = 1;
  schedule.graph = two_heads().graph;
  EXPECT_TRUE(fails_with([&] { exec::expect_trainable(schedule, tiny); }, "1 word "));
}

}  // namespace
}  // namespace bubblescope::tests
