// Reference results for posted messages: makespans and deadlocks of PyTorch's lowered lists under
// blocking semantics, and the eager slots that they need.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/defer_receives.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/golden/reference_data.h"
#include "tests/support/as_written.h"
#include "tests/support/test_paths.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

using nlohmann::json;

const std::filesystem::path kGolden = std::filesystem::path(reference_folder()) / "golden";

/// One JSON value per line; empty where the file is missing.
std::vector<json> lines_of(const std::filesystem::path& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return file ? json::parse(file) : json();
}

/// Families of PyTorch schedules, each with our name.
struct Family {
  std::string file;
  std::string name;
};
const std::vector<Family> kFamilies{{"Interleaved1F1B", "interleaved"},
                                    {"InterleavedZeroBubble", "interleaved-zb"},
                                    {"LoopedBFS", "bfs"},
                                    {"ZBVZeroBubble", "zb-v"}};

Schedule built(const std::string& name, const json& shape) {
  ScheduleRequest request;
  request.profile = Profile::kPytorch;
  request.shape.ranks = shape["p"];
  request.shape.chunks = name == "zb-v" ? 1 : shape["v"].get<std::int32_t>();
  request.shape.microbatches = shape["m"];
  return build_schedule(find_schedule(name), request);
}

/// With F = I = W = 1 and B = 2 per chunk and messages without time: a makespan, or "deadlock".
json outcome(const Schedule& schedule, P2pMode mode, ReceivePosting posting) {
  LowerOptions options;
  options.mode = mode;
  options.posting = posting;
  const auto lowered = lower(schedule, options);
  if (std::holds_alternative<Deadlock>(lowered)) return "deadlock";
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 1;
  cost.per = UniformCost::Per::kChunk;
  const auto& program = std::get<Program>(lowered);
  const Timeline timeline = simulate(program, spread(cost, schedule));
  return static_cast<double>(*std::max_element(timeline.end.begin(), timeline.end.end()));
}

TEST(MessageGoldens, HostModesTakeTheReferenceTimeOrDeadlockAlike) {
  if (!std::filesystem::exists(kGolden)) GTEST_SKIP() << "no reference data in " << kGolden;
  int cases = 0;
  for (const Family& family : kFamilies)
    for (const json& golden :
         lines_of(kGolden / "frameworks" / ("pytorch_" + family.file + ".jsonl")))
      for (const ReceivePosting posting : {ReceivePosting::kAsap, ReceivePosting::kDeferred}) {
        const json& want =
            golden[posting == ReceivePosting::kAsap ? "rendezvous" : "rendezvous_deferred"];
        const Schedule schedule = built(family.name, golden);
        const std::string where = family.name + " " + golden["p"].dump() + " " +
                                  golden["v"].dump() + " " + golden["m"].dump();
        EXPECT_EQ(want["both_block"], outcome(schedule, P2pMode::kHostRendezvous, posting))
            << where;
        EXPECT_EQ(want["irecv_block_send"], outcome(schedule, P2pMode::kHostSend, posting))
            << where;
        cases += 2;
      }
  EXPECT_GT(cases, 1000);
  RecordProperty("cases", cases);
}

TEST(MessageGoldens, EagerSlotsAreTheReferenceOnes) {
  const json goldens = read(kGolden / "_min_eager_slots.json");
  if (goldens.is_null()) GTEST_SKIP() << "no reference data in " << kGolden;
  for (const json& golden : goldens)
    for (const Family& family : kFamilies) {
      if (golden["sched"] != family.file) continue;
      const Schedule schedule = built(family.name, golden);
      EXPECT_EQ(eager_slots_needed(schedule, {.posting = ReceivePosting::kAsap}),
                golden["asap_sep"])
          << golden;
      EXPECT_EQ(eager_slots_needed(schedule, {.posting = ReceivePosting::kDeferred}),
                golden["defer_sep"])
          << golden;
    }
}

TEST(MessageGoldens, DeferredListsAreTheReferenceOnes) {
  const json goldens = read(kGolden / "pytorch_lowering_cases.json");
  if (goldens.is_null()) GTEST_SKIP() << "no reference data in " << kGolden;
  for (const json& golden : goldens["lowering"]) {
    std::vector<std::vector<std::string>> want = golden["deferred"];
    for (std::vector<std::string>& row : want) row = with_input_gradients(row);
    std::string text;
    for (const json& row : golden["comms"]) {
      for (const std::string& cell : with_input_gradients(row)) text += cell + " ";
      text += "\n";
    }
    const Schedule schedule = traces::parse_schedule_text(text);
    std::vector<std::vector<std::string>> got;
    for (const RankOrder& list : defer_receives(schedule, schedule.posted)) {
      got.emplace_back();
      for (const Op& op : list) got.back().push_back(to_string(op));
    }
    EXPECT_EQ(got, want) << golden["name"];
  }
}

}  // namespace
}  // namespace bubblescope::tests
