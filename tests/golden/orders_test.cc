// The frameworks' own orders, computed by their generators: ours are equal op for op, and what we
// make of them in time and memory is what was computed from theirs.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "sim/ir/error.h"
#include "tests/golden/reference_data.h"
#include "tests/golden/sha256.h"
#include "tests/support/error_text.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

using nlohmann::json;

constexpr GoldenFamily kFamilies[] = {
    {"pytorch_GPipe", "gpipe", Profile::kPytorch},
    {"pytorch_1F1B", "1f1b", Profile::kPytorch},
    {"pytorch_Interleaved1F1B", "interleaved", Profile::kPytorch},
    {"pytorch_LoopedBFS", "bfs", Profile::kPytorch},
    {"pytorch_InterleavedZeroBubble", "interleaved-zb", Profile::kPytorch},
    {"pytorch_ZBVZeroBubble", "zb-v", Profile::kPytorch},
    {"pytorch_DualPipeV", "dualpipev", Profile::kPytorch},
    {"megatron_1F1B", "1f1b", Profile::kMegatron},
    {"megatron_interleaved", "interleaved", Profile::kMegatron},
    {"megatron_interleaved_moeoverlap", "interleaved", Profile::kMegatron, true},
    {"megatron_forward_only", "forward-only", Profile::kMegatron},
    {"deepspeed_train", "1f1b", Profile::kDeepspeed},
    {"dualpipe", "dualpipe", Profile::kDeepseek},
    {"dualpipev_deepseek", "dualpipev", Profile::kDeepseek},
};

std::vector<std::string> texts_of(const Schedule& schedule) {
  std::vector<std::string> texts;
  for (const RankOrder& ops : schedule.order) texts.push_back(order_text(ops));
  return texts;
}

/// The digest of the ranks joined by line ends and their ops by commas.
std::string digest_of(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : "\n") + text;
  for (char& letter : joined)
    if (letter == ' ') letter = ',';
  return sha256(joined);
}

void expect_order(const json& golden_case, const Schedule& schedule) {
  const std::vector<std::string> texts = texts_of(schedule);
  if (golden_case.contains("ops")) {
    EXPECT_EQ(golden_case["ops"], texts);
  }
  if (golden_case.contains("sha256")) {
    EXPECT_EQ(golden_case["sha256"], digest_of(texts));
  }
}

/// Makespans are stored in units of F, for messages without time and with a tenth of it. Where
/// overlapped pairs matter, there is one for each of the three modes.
int expect_makespans(const json& golden_case, const Schedule& schedule, UniformCost cost) {
  int compared = 0;
  const std::pair<std::string, Overlap> modes[] = {{"", Overlap::kAtomic},
                                                   {"_serial", Overlap::kSerial},
                                                   {"_atomic", Overlap::kAtomic},
                                                   {"_fused", Overlap::kFused}};
  const std::pair<std::string, Nanos> messages[] = {{"makespan_c0", 0}, {"makespan_c01", 1}};
  for (const auto& [suffix, overlap] : modes)
    for (const auto& [key, message] : messages) {
      if (!golden_case.contains(key + suffix)) continue;
      cost.message = message;
      const double units = golden_case[key + suffix];
      EXPECT_EQ(simulate_times(schedule, cost, overlap).makespan,
                std::llround(units * static_cast<double>(kGoldenUnit)))
          << key << suffix;
      ++compared;
    }
  return compared;
}

int expect_peaks(const json& golden_case, const Schedule& schedule) {
  int compared = 0;
  // In millionths of chunks; the file has whole chunks for the first two rules, then half ones.
  const std::tuple<const char*, Release, std::int64_t> rules[] = {
      {"peak_act", Release::kWeightGrad, kWhole},
      {"peak_act_freeI", Release::kInputGrad, kWhole},
      {"peak_act_half_x2", Release::kHalf, kWhole / 2}};
  for (const auto& [key, release, scale] : rules) {
    if (!golden_case.contains(key)) continue;
    std::vector<std::int64_t> golden = golden_case[key];
    for (std::int64_t& peak : golden) peak *= scale;
    EXPECT_EQ(walk_peaks(schedule, chunk_millionths(release)), golden) << key;
    ++compared;
  }
  return compared;
}

class FrameworkOrder : public testing::TestWithParam<GoldenFamily> {};

TEST_P(FrameworkOrder, IsEqualOpForOpAndTakesTheSameTimeAndMemory) {
  const GoldenFamily& family = GetParam();
  const std::string file = "golden/frameworks/" + std::string(family.file) + ".jsonl";
  if (const std::string missing = missing_reference(file); !missing.empty())
    GTEST_SKIP() << missing;
  int makespans = 0;
  int peaks = 0;
  for (const json& golden_case : read_reference_lines(file)) {
    const ScheduleRequest request = make_request(family, golden_case);
    SCOPED_TRACE("p=" + std::to_string(request.shape.ranks) +
                 " v=" + std::to_string(request.shape.chunks) +
                 " m=" + std::to_string(request.shape.microbatches));
    const Schedule schedule = build_schedule(find_schedule(family.schedule), request);
    expect_order(golden_case, schedule);
    makespans += expect_makespans(golden_case, schedule, request.cost);
    peaks += expect_peaks(golden_case, schedule);
  }
  EXPECT_GT(makespans, 0);
  EXPECT_EQ(peaks > 0, std::string(family.schedule) != "forward-only");
}

INSTANTIATE_TEST_SUITE_P(Golden, FrameworkOrder, testing::ValuesIn(kFamilies),
                         [](const auto& family) { return std::string(family.param.file); });

/// A list of refused cases in the file of errors: [p, v, m, group size or the framework's words].
struct RefusedCases {
  const char* key;
  GoldenFamily family;
};

std::ostream& operator<<(std::ostream& out, const RefusedCases& cases) {
  return out << cases.family;
}

constexpr RefusedCases kRefused[] = {
    {"pt_1F1B", {"", "1f1b", Profile::kPytorch}},
    {"pt_Interleaved1F1B", {"", "interleaved", Profile::kPytorch}},
    {"pt_InterleavedZeroBubble", {"", "interleaved-zb", Profile::kPytorch}},
    {"pt_DualPipeV", {"", "dualpipev", Profile::kPytorch}},
    {"meg_range", {"", "interleaved", Profile::kMegatron}},
    {"meg_final_group", {"", "interleaved", Profile::kMegatron}},
};

class FrameworkRefusal : public testing::TestWithParam<RefusedCases> {};

TEST_P(FrameworkRefusal, IsOursUnderItsProfile) {
  const std::string file = "golden/_errors_and_cross_checks.json";
  if (const std::string missing = missing_reference(file); !missing.empty())
    GTEST_SKIP() << missing;
  const json refused = read_reference(file)["errors"][GetParam().key];
  EXPECT_FALSE(refused.empty());
  for (const json& row : refused) {
    json golden_case = {{"p", row[0]}, {"v", row[1]}, {"m", row[2]}};
    if (row[3].is_number()) golden_case["N"] = row[3];
    const ScheduleRequest request = make_request(GetParam().family, golden_case);
    const std::string name = GetParam().family.schedule;
    EXPECT_TRUE(fails_with([&] { build_schedule(find_schedule(name), request); },
                           name + " cannot be built under `profile` "))
        << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, FrameworkRefusal, testing::ValuesIn(kRefused),
                         [](const auto& cases) { return std::string(cases.param.key); });

TEST(Sha256, DigestsTheStandardsExamples) {
  // FIPS 180-4, and the message of two blocks in its examples.
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace bubblescope::tests
