// Reference results of the zero-bubble papers' heuristics and integer programs: ours are never
// longer under the same caps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/schedule_def.h"
#include "tests/golden/reference_data.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/sanitized.h"

namespace bubblescope::tests {
namespace {

using nlohmann::json;

constexpr double kNanosPerUnit = 1e3;
constexpr std::int64_t kMillionths = 1'000'000;

constexpr const char* kFile = "golden/zero_bubble.json";

const json& reference() {
  static const json data = read_reference(kFile);
  return data;
}

Nanos nanos(const json& units) { return std::llround(units.get<double>() * kNanosPerUnit); }

ScheduleRequest make_request(const json& shape, const json& costs) {
  ScheduleRequest request;
  request.shape.ranks = shape["p"];
  request.shape.chunks = shape.value("v", 1);
  request.shape.microbatches = shape["m"];
  request.cost.per = UniformCost::Per::kChunk;
  request.cost.forward = nanos(costs[0]);
  request.cost.input_grad = nanos(costs[1]);
  request.cost.weight_grad = nanos(costs[2]);
  request.cost.message = nanos(costs[3]);
  return request;
}

void set_memory(ScheduleRequest& request, const json& unit, const json& cap) {
  const auto millionths = [&](std::size_t at) {
    return unit[at].get<std::int64_t>() * kMillionths;
  };
  request.memory.unit = {millionths(0), millionths(1), millionths(2)};
  if (!cap.is_null())
    request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks),
                              std::llround(cap.get<double>() * kMillionths));
}

/// Returns the schedule after checking its peaks.
Schedule built_within_caps(const std::string& name, const ScheduleRequest& request) {
  Schedule schedule = build_schedule(find_schedule(name), request);
  const std::vector<std::int64_t> peaks = walk_peaks(schedule, request.memory.unit);
  for (std::size_t rank = 0; rank < request.memory.cap.size(); ++rank)
    EXPECT_LE(peaks[rank], request.memory.cap[rank]) << name << " rank " << rank;
  return schedule;
}

/// Every `stride`-th of the cases that satisfy a predicate, and a tenth of these under a sanitizer.
std::vector<json> cases_of(const std::function<bool(const json&)>& wanted, std::size_t stride) {
  std::vector<json> cases;
  std::size_t seen = 0;
  const json& all = reference()["cases"];
  for (const json& entry : all)
    if (wanted(entry) && seen++ % (kSanitized ? 10 * stride : stride) == 0) cases.push_back(entry);
  return cases;
}

class ZeroBubbleReference : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_reference(kFile); !missing.empty())
      GTEST_SKIP() << missing;
  }
};

TEST_F(ZeroBubbleReference, AutomaticSchedulesAreNoLongerUnderTheSameCap) {
  const auto capped = [](const json& entry) { return entry["s"] == "zb" || entry["s"] == "zbv"; };
  for (const json& entry : cases_of(capped, 11)) {
    ScheduleRequest request = make_request(entry, entry["op"]);
    const json& unit =
        entry["mem"] == "cnt" ? json{1, 0, -1} : reference()["gpt_mem"][entry["mem"]];
    set_memory(request, unit, entry["max_mem"]);
    const Schedule schedule = built_within_caps(entry["s"] == "zb" ? "zb-auto" : "v-auto", request);
    EXPECT_LE(simulate_times(schedule, request.cost).max_span, nanos(entry["longest"])) << entry;
  }
}

TEST_F(ZeroBubbleReference, IntegerProgramsFindNothingShorter) {
  const json& programs = reference()["ilp"];
  for (const json& entry : programs) {
    ScheduleRequest request = make_request(entry, entry["cost"]);
    const json unit = entry["mem"] == "cnt" ? json{2, 0, -2} : json{2, -1, -1};
    set_memory(request, unit, entry["max_mem"]);
    const Schedule schedule = built_within_caps("zb-auto", request);
    EXPECT_EQ(simulate_times(schedule, request.cost).max_span, nanos(entry["ilp_obj"])) << entry;
  }
}

TEST_F(ZeroBubbleReference, PublishedRatesAreReached) {
  const json& tables = reference()["tables"];
  for (const json& row : tables) {
    if (row["table"] != "t5" || row["p"] > 16) continue;
    const ScheduleRequest request = make_request(row, {row["F"], row["B"], row["W"], row["C"]});
    for (const auto& [name, column] : {std::pair{"zb-1p", "ZB-1p"}, {"zb-2p", "ZB-2p"}}) {
      const Schedule schedule = build_schedule(find_schedule(name), request);
      EXPECT_LE(simulate_times(schedule, request.cost).max_span, nanos(row["cost"][column]))
          << name << ' ' << row;
    }
  }
}

TEST_F(ZeroBubbleReference, BuildingBlocksHaveTheirPeaksAndNoMoreBubble) {
  for (const auto& [theirs, ours] :
       {std::pair{"vmin", "v-min"}, {"vhalf", "v-half"}, {"1f1b_v", "1f1b-v"}})
    for (const json& entry :
         cases_of([name = theirs](const json& entry) { return entry["s"] == name; }, 5)) {
      const ScheduleRequest request = make_request(entry, entry["op"]);
      const Schedule schedule = build_schedule(find_schedule(ours), request);
      const std::vector<std::int64_t> peaks = walk_peaks(schedule, MemoryDelta{});
      const std::vector<std::int64_t> wanted = entry["pk"];
      EXPECT_LE(*std::max_element(peaks.begin(), peaks.end()),
                *std::max_element(wanted.begin(), wanted.end()))
          << entry;
      EXPECT_LE(simulate_times(schedule, request.cost).max_span, nanos(entry["longest"])) << entry;
    }
}

}  // namespace
}  // namespace bubblescope::tests
