// PyTorch's lowering of its own schedules, from the golden data: our lists with messages are the
// same, action for action.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/ir/post_messages.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/shard_stages.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/golden/reference_data.h"
#include "tests/golden/sha256.h"
#include "tests/support/as_written.h"
#include "traces/schedules/pytorch_csv.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Schedule schedule_of(const nlohmann::json& golden) {
  std::string text;
  for (const auto& row : golden["ops"]) text += row.get<std::string>() + '\n';
  return traces::parse_schedule_text(text);
}

class Lowering : public testing::TestWithParam<const char*> {
 protected:
  static std::string path(const std::string& name) {
    return reference_folder() + "/golden/" + name;
  }
};

TEST_P(Lowering, IsThatOfPyTorch) {
  std::ifstream file(path("frameworks/pytorch_" + std::string(GetParam()) + ".jsonl"));
  if (!file) GTEST_SKIP() << "no golden data in " << reference_folder();
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    const auto golden = nlohmann::json::parse(line);
    if (!golden.contains("ops")) continue;
    std::string lowered = write_pytorch_csv_comms(
        shard_stages(schedule_of(golden), PytorchRelease::kFrom26), {PytorchRelease::kFrom26});
    lowered.pop_back();
    EXPECT_EQ(golden["lowered_sha256"], sha256(lowered))
        << "p " << golden["p"] << ", v " << golden["v"] << ", m " << golden["m"] << "\n"
        << lowered;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Lowering,
                         testing::Values("DualPipeV", "Interleaved1F1B", "InterleavedZeroBubble",
                                         "LoopedBFS", "ZBVZeroBubble"));

/// Release 2.15 lowers the orders of `schedule` like its golden lists, and the result reads as
/// legal.
TEST(Lowering215, IsThatOfPyTorch) {
  std::ifstream file(reference_folder() + "/golden/pytorch_215_comms.json");
  if (!file) GTEST_SKIP() << "no golden data in " << reference_folder();
  const auto cases = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& golden : cases["cases"]) {
    std::string rows;
    for (const auto& row : golden["rows"]) rows += row.get<std::string>() + '\n';
    const Schedule schedule = traces::parse_schedule_text(rows);
    EXPECT_TRUE(validate(schedule).empty()) << golden["schedule"];
    ScheduleRequest request;
    request.profile = Profile::kPytorch215;
    request.shape = {golden["p"], golden["v"], golden["m"], 1, {}};
    const Schedule built =
        build_schedule(find_schedule(golden["schedule"].get<std::string>()), request);
    const bool deferred = golden["lowering"] == "deferred";
    EXPECT_EQ(make_pytorch_lists(shard_stages(built),
                                 {.posting = deferred ? bubblescope::ReceivePosting::kDeferred
                                                      : bubblescope::ReceivePosting::kAsap}),
              schedule.posted)
        << golden["schedule"] << " p " << golden["p"] << " m " << golden["m"];
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(LoweringCases, AreThoseOfPyTorchsTests) {
  std::ifstream file(reference_folder() + "/golden/pytorch_lowering_cases.json");
  if (!file) GTEST_SKIP() << "no golden data in " << reference_folder();
  const auto cases = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& golden : cases["lowering"]) {
    if (golden["merge_bw"]) continue;
    const auto text_of = [](const nlohmann::json& rows, const char* idle) {
      std::string text;
      for (const auto& row : rows) {
        for (const std::string& cell : with_input_gradients(row))
          text += (cell.empty() ? idle : cell) + ' ';
        text += '\n';
      }
      return text;
    };
    EXPECT_EQ(post_messages(traces::parse_schedule_text(text_of(golden["compute"], "_"))),
              traces::parse_schedule_text(text_of(golden["comms"], "_")).posted)
        << golden["name"];
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace bubblescope::tests
