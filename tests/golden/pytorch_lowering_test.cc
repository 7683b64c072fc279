// PyTorch's lowering of its own schedules, from the golden data: the lists with their messages are
// the same, action for action.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/ir/post_messages.h"
#include "tests/golden/sha256.h"
#include "traces/pytorch_csv.h"
#include "traces/text_schedule.h"

namespace bubblescope {
namespace {

/// The stages of the next cells, each once, up to the third.
std::vector<std::int32_t> next_stages(const RankOrder& ops, std::size_t at) {
  std::vector<std::int32_t> stages;
  for (; at < ops.size(); ++at) {
    if (std::find(stages.begin(), stages.end(), ops[at].stage) == stages.end())
      stages.push_back(ops[at].stage);
    if (ops[at].pairing != Pairing::kFirst && stages.size() >= 3) break;
  }
  return stages;
}

/// The order in which Python walks through a small set of small numbers.
void sort_like_a_set(std::vector<std::int32_t>& stages) {
  std::sort(stages.begin(), stages.end(), [](std::int32_t left, std::int32_t right) {
    return std::pair(left % 8, left) < std::pair(right % 8, right);
  });
}

/// PyTorch's _add_unshard_reshard: the next three stages are unsharded, others are not.
RankOrder add_unshards(const RankOrder& ops) {
  RankOrder out;
  std::vector<std::int32_t> active;
  const auto contains = [](const std::vector<std::int32_t>& stages, std::int32_t stage) {
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
  };
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (ops[at].pairing != Pairing::kSecond) {
      const std::vector<std::int32_t> next = next_stages(ops, at);
      sort_like_a_set(active);
      for (const std::int32_t stage : active)
        if (!contains(next, stage)) out.push_back({stage, 0, 0, OpKind::kReshard});
      std::erase_if(active, [&](std::int32_t stage) { return !contains(next, stage); });
      for (const std::int32_t stage : next)
        if (!contains(active, stage)) {
          active.push_back(stage);
          out.push_back({stage, 0, 0, OpKind::kUnshard});
        }
    }
    out.push_back(ops[at]);
  }
  sort_like_a_set(active);
  for (const std::int32_t stage : active) out.push_back({stage, 0, 0, OpKind::kReshard});
  return out;
}

/// PyTorch's _add_reduce_grad: behind the last weight gradient of a stage.
RankOrder add_reduces(const RankOrder& ops, std::int32_t microbatches) {
  RankOrder out;
  std::map<std::int32_t, std::int32_t> count;
  std::vector<std::int32_t> complete;
  for (const Op& op : ops) {
    out.push_back(op);
    const bool reduces = op.kind == OpKind::kBackward || op.kind == OpKind::kWeightGrad;
    if (reduces && ++count[op.stage] == microbatches) complete.push_back(op.stage);
    if (op.pairing == Pairing::kFirst) continue;
    for (const std::int32_t stage : complete) out.push_back({stage, 0, 0, OpKind::kReduceGrad});
    complete.clear();
  }
  return out;
}

Schedule schedule_of(const nlohmann::json& golden) {
  std::string text;
  for (const auto& row : golden["ops"]) text += row.get<std::string>() + '\n';
  return parse_schedule_text(text);
}

class Lowering : public testing::TestWithParam<const char*> {
 protected:
  static std::string path(const std::string& name) {
    return std::string(BUBBLESCOPE_SHARED_DATA) + "/golden/" + name;
  }
};

TEST_P(Lowering, IsThatOfPyTorch) {
  std::ifstream file(path("frameworks/pytorch_" + std::string(GetParam()) + ".jsonl"));
  if (!file) GTEST_SKIP() << "no golden data in " << BUBBLESCOPE_SHARED_DATA;
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    const auto golden = nlohmann::json::parse(line);
    if (!golden.contains("ops")) continue;
    Schedule schedule = schedule_of(golden);
    for (const RankOrder& ops : schedule.order)
      schedule.posted.push_back(add_reduces(add_unshards(ops), schedule.shape.microbatches));
    std::string lowered = write_pytorch_csv_comms(schedule);
    lowered.pop_back();
    EXPECT_EQ(sha256(lowered), golden["lowered_sha256"])
        << "p " << golden["p"] << ", v " << golden["v"] << ", m " << golden["m"] << "\n"
        << lowered;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Lowering,
                         testing::Values("DualPipeV", "Interleaved1F1B", "InterleavedZeroBubble",
                                         "LoopedBFS", "ZBVZeroBubble"));

TEST(LoweringCases, AreThoseOfPyTorchsTests) {
  std::ifstream file(std::string(BUBBLESCOPE_SHARED_DATA) + "/golden/pytorch_lowering_cases.json");
  if (!file) GTEST_SKIP() << "no golden data in " << BUBBLESCOPE_SHARED_DATA;
  const auto cases = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& golden : cases["lowering"]) {
    if (golden["merge_bw"]) continue;
    const auto text_of = [](const nlohmann::json& rows, const char* idle) {
      std::string text;
      for (const auto& row : rows) {
        for (const auto& cell : row) text += (cell == "" ? idle : cell.get<std::string>()) + ' ';
        text += '\n';
      }
      return text;
    };
    EXPECT_EQ(post_messages(parse_schedule_text(text_of(golden["compute"], "_"))),
              parse_schedule_text(text_of(golden["comms"], "_")).posted)
        << golden["name"];
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace bubblescope
