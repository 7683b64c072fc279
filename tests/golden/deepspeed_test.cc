// Compares DeepSpeed's instruction streams with those that its own schedules produced.
#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "tests/golden/reference_data.h"
#include "tests/support/error_text.h"
#include "traces/files/format.h"

namespace bubblescope::tests {
namespace {

constexpr const char* kFile = "golden/frameworks/deepspeed_train.jsonl";

const traces::ScheduleFormat& deepspeed() {
  return *Registry<traces::ScheduleFormat>::instance().find("deepspeed");
}

Schedule build(const std::string& name, const nlohmann::json& golden) {
  ScheduleRequest request;
  request.shape.ranks = golden["p"];
  request.shape.microbatches = golden["m"];
  request.profile = name == "1f1b" ? Profile::kDeepspeed : Profile::kNone;
  return build_schedule(find_schedule(name), request);
}

std::string lines(const nlohmann::json& rows) {
  std::string text;
  for (const auto& row : rows) text += row.get<std::string>() + "\n";
  return text;
}

TEST(DeepSpeed, StreamsAreThoseOfItsSchedules) {
  if (const std::string missing = missing_reference(kFile); !missing.empty())
    GTEST_SKIP() << missing;
  int compared = 0;
  for (const nlohmann::json& golden : read_reference_lines(kFile)) {
    if (golden.contains("instr")) {
      EXPECT_EQ(deepspeed().write(build("1f1b", golden)), lines(golden["instr"]));
      ++compared;
    }
    if (golden.contains("inference_instr")) {
      EXPECT_EQ(deepspeed().write(build("forward-only", golden)), lines(golden["inference_instr"]));
    }
  }
  EXPECT_GT(compared, 30);
}

TEST(DeepSpeed, StreamsAreReadBack) {
  for (const char* name : {"1f1b", "forward-only"})
    for (const int ranks : {1, 2, 3, 5})
      for (const int microbatches : {1, 2, 4, 9}) {
        const Schedule schedule = build(name, {{"p", ranks}, {"m", microbatches}});
        const std::string text = deepspeed().write(schedule);
        const Schedule again = deepspeed().read(text, "s.txt");
        EXPECT_EQ(again.order, schedule.order) << text;
        EXPECT_TRUE(validate(again).empty()) << text << to_string(validate(again)[0]);
        EXPECT_EQ(deepspeed().write(again), text);
      }
}

// The last micro-batch first: rank 1 runs B1 before B0, and rank 0 receives its gradients in this
// order. Numbers of buffers are those of the micro-batches here, whatever comes first.
TEST(DeepSpeed, BuffersSayWhichMicrobatchAnInstructionIsOf) {
  const Schedule read = deepspeed().read(
      "LD0+F0 SA0 LD1+F1 SA1 RG1+B1 RG0+B0+RTG+RGD+OPT\n"
      "- RA0+LD0+F0 - RA1+LD1+F1+B1+SG1 B0+SG0 RTG+RGD+OPT\n",
      "s.txt");
  EXPECT_EQ(read.order[0],
            (RankOrder{forward(0, 0), forward(0, 1), backward(0, 1), backward(0, 0)}));
  EXPECT_EQ(read.order[1],
            (RankOrder{forward(1, 0), forward(1, 1), backward(1, 1), backward(1, 0)}));
  EXPECT_TRUE(validate(read).empty());
}

TEST(DeepSpeed, RefusesWhatItsFrameworkLacks) {
  const Schedule gpipe = build("gpipe", {{"p", 2}, {"m", 2}});
  EXPECT_EQ(error_of([&] { deepspeed().write(gpipe); }),
            "DeepSpeed has no schedule that runs rank 1 as gpipe does: its TrainSchedule is "
            "1f1b, its InferenceSchedule forward-only, both with one stage per rank; convert one "
            "of those");
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"LD0+F0 X1\n", "s.txt:1: step 2: 'X1' is not an instruction"},
      {"LD0+F\n", "step 1: 'F' needs its buffer's number"},
      {"LD0+F0 OPT1\n", "'OPT1' has no buffer"},
      {"LD0+F0+\n", "step 1: '' is not an instruction"},
      {"LD0\n", "no compute op"},
      {"F0+B0\n", "'F0' finds nothing in buffer 0: LD has to come before"},
      {"LD0+F1\n", "'F1' finds nothing in buffer 1"},
      {"LD0+F0 LD0+F0 B0 B0\n", "'LD0' overwrites micro-batch 0, whose backward is still to come"},
      {"LD0+F0 F0 B0\n", "'F0' runs the forward of micro-batch 0 again"},
      {"LD0+F0 SA0 LD1+F1 SA1 RG0+B0 RG1+B1\n"
       "- RA0+LD0+F0 - RA1+LD1+F1+B1+SG1 B0+SG0\n",
       "s.txt:1: step 5: 'RG0' receives the gradient of micro-batch 1"},
      {"LD0+F0 SA0 LD1+F1 SA1 RG0+B0 RG1+B1\n"
       "- RA0+LD1 RA1+LD0 F0 B0+SG0 F1 B1+SG1\n",
       "s.txt:2: step 4: 'F0' has the input of micro-batch 0 and the labels of micro-batch 1"},
  };
  for (const auto& one : cases) {
    try {
      deepspeed().read(one.text, "s.txt");
      ADD_FAILURE() << one.text << " was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(one.said), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests
