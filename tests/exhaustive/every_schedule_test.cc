// Every registered schedule over all small shapes is legal, does not deadlock and keeps its claims.
// New schedules are tested without being named here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <ostream>
#include <string>
#include <tuple>

#include "sim/engine/simulate.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::inline sim {

/// Used by gtest, which would print the bytes.
static std::ostream& operator<<(std::ostream& out, const ScheduleDef& def) {
  return out << def.name;
}

}  // namespace bubblescope::inline sim

namespace bubblescope::tests {

namespace {

constexpr std::int32_t kMaxRanks = 8;

/// Shares that one, two and three chunks divide evenly: equal F, I and W, unequal ones, and a full
/// backward that costs more than its halves.
std::vector<UniformCost> uniform_costs() {
  std::vector<UniformCost> costs;
  for (const std::array<Nanos, 4> share : {std::array<Nanos, 4>{60, 60, 60, 120},
                                           {120, 180, 60, 240},
                                           {60, 120, 60, 180},
                                           {180, 120, 120, 240},
                                           {60, 60, 180, 240},
                                           {60, 60, 60, 180}}) {
    UniformCost& cost = costs.emplace_back();
    cost.forward = share[0];
    cost.input_grad = share[1];
    cost.weight_grad = share[2];
    cost.backward = share[3];
  }
  return costs;
}

/// No messages, hidden ones, ones that some schedules hide, and ones longer than any op.
constexpr Nanos kMessages[] = {0, 6, 45, 600};

/// The values of one flag that have an effect on a schedule.
std::vector<std::int32_t> chunks_of(const ScheduleDef& def) {
  if (def.repeats_chunks) return {*def.implied_chunks, 2 * *def.implied_chunks};
  if (def.implied_chunks) return {*def.implied_chunks};
  return {1, 2, 3};
}
std::vector<std::int32_t> slices_of(const ScheduleDef& def) {
  if (def.slices_sequences) return {1, 2, 4};
  return {1};
}
std::vector<MoeOverlap> overlaps_of(const ScheduleDef& def) {
  if (def.overlaps_experts) return {MoeOverlap::kNone, MoeOverlap::kTurns};
  return {MoeOverlap::kNone};
}

/// Every small shape that the schedule may accept, under every profile that has it.
std::vector<ScheduleRequest> small_requests(const ScheduleDef& def) {
  std::vector<Profile> profiles = def.profiles;
  profiles.push_back(Profile::kNone);
  std::vector<ScheduleRequest> requests(1);
  const auto vary = [&](const auto& values, const auto& set) {
    std::vector<ScheduleRequest> varied;
    for (const ScheduleRequest& request : requests)
      for (const auto& value : values) set(varied.emplace_back(request), value);
    requests = std::move(varied);
  };
  // ^Searches take long for every shape; their own tests cover more.
  std::vector<std::int32_t> ranks(def.reads_costs ? kMaxRanks / 2 : kMaxRanks);
  std::iota(ranks.begin(), ranks.end(), 1);
  std::vector<std::int32_t> microbatches(4 * kMaxRanks + 1);
  std::iota(microbatches.begin(), microbatches.end(), 1);
  vary(profiles, [](ScheduleRequest& request, Profile value) { request.profile = value; });
  vary(ranks, [](ScheduleRequest& request, std::int32_t value) { request.shape.ranks = value; });
  vary(chunks_of(def),
       [](ScheduleRequest& request, std::int32_t value) { request.shape.chunks = value; });
  vary(slices_of(def),
       [](ScheduleRequest& request, std::int32_t value) { request.shape.slices = value; });
  vary(overlaps_of(def),
       [](ScheduleRequest& request, MoeOverlap value) { request.moe_overlap = value; });
  vary(microbatches,
       [](ScheduleRequest& request, std::int32_t value) { request.shape.microbatches = value; });
  std::erase_if(requests, [](const ScheduleRequest& request) {
    return request.shape.microbatches > 4 * request.shape.ranks + 1;
  });
  return requests;
}

/// Calls `visit` with every small shape that the schedule accepts; returns their number.
int for_each_schedule(const ScheduleDef& def,
                      const std::function<void(const ScheduleRequest&, const Schedule&)>& visit) {
  int built = 0;
  for (const ScheduleRequest& request : small_requests(def)) {
    if (def.refuse && !def.refuse(request).empty()) continue;
    visit(request, build_schedule(def, request));
    ++built;
  }
  return built;
}

std::string text_of(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const UniformCost& cost = request.cost;
  return to_string(request.profile) + " p=" + std::to_string(shape.ranks) +
         " v=" + std::to_string(shape.chunks) + " n=" + std::to_string(shape.slices) +
         " m=" + std::to_string(shape.microbatches) + " F=" + std::to_string(cost.forward) +
         " I=" + std::to_string(cost.input_grad) + " W=" + std::to_string(cost.weight_grad) +
         " B=" + std::to_string(cost.full_backward()) + " c=" + std::to_string(cost.message);
}

/// The number of claims of each kind that were compared, and the wrong ones.
struct ClaimCheck {
  std::map<std::string, int> compared;
  std::vector<std::string> wrong;

  template <class Value>
  void compare(const std::string& what, const Value& claimed, const Value& found,
               const ScheduleRequest& request) {
    ++compared[what];
    if (claimed != found) wrong.push_back(what + " at " + text_of(request));
  }
};

void check_times(ClaimCheck& check, const ScheduleDef& def, ScheduleRequest request,
                 const Schedule& schedule) {
  const Program program = lower_or_throw(schedule);
  for (const UniformCost& cost : uniform_costs())
    for (const Nanos message : kMessages) {
      request.cost = cost;
      request.cost.message = message;
      const Claims claims = def.claims(request);
      if (!claims.makespan && !claims.max_span) continue;
      const Times times = times_of(program, simulate(program, spread(request.cost, schedule)));
      const std::string messages = message == 0 ? "" : " with messages";
      if (claims.makespan)
        check.compare("makespan" + messages, *claims.makespan, times.makespan, request);
      if (claims.max_span)
        check.compare("max_span" + messages, *claims.max_span, times.max_span, request);
    }
}

ClaimCheck check_claims(const ScheduleDef& def) {
  ClaimCheck check;
  const auto visit = [&](const ScheduleRequest& request, const Schedule& schedule) {
    const std::vector<std::int64_t> peaks = def.claims(request).peak_chunks;
    if (!peaks.empty())
      check.compare("peak_chunks", peaks, walk_peaks(schedule, MemoryDelta{}), request);
    check_times(check, def, request, schedule);
  };
  for_each_schedule(def, visit);
  return check;
}

/// Per (stage, micro-batch): F, and B or I and W, each once, and nothing else but copies.
bool runs_each_op_once(const Schedule& schedule) {
  std::map<std::tuple<OpKind, std::int32_t, std::int32_t, std::int16_t>, int> runs;
  std::int64_t whole = 0;  // a full backward counts as its two halves
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops) {
      if (++runs[{op.kind, op.stage, op.microbatch, op.slice}] > 1) return false;
      if (!is_copy(op.kind)) whole += op.kind == OpKind::kBackward ? 2 : 1;
    }
  const std::int64_t parts = schedule.forward_only ? 1 : 3;
  return whole == parts * schedule.stages_per_pipeline() * schedule.shape.microbatches *
                      schedule.shape.slices;
}

class EverySchedule : public testing::TestWithParam<ScheduleDef> {};

TEST_P(EverySchedule, IsLegalForEveryShapeItAccepts) {
  const int built =
      for_each_schedule(GetParam(), [](const ScheduleRequest& request, const Schedule& schedule) {
        for (const Problem& problem : validate_ops(schedule))
          ADD_FAILURE() << text_of(request) << ": " << to_string(problem);
        EXPECT_TRUE(runs_each_op_once(schedule)) << text_of(request);
        EXPECT_EQ(schedule.forward_only, !GetParam().trains) << text_of(request);
        EXPECT_EQ(schedule.weights.empty(), GetParam().flushes) << text_of(request);
      });
  EXPECT_GT(built, 0);
}

TEST_P(EverySchedule, NeverDeadlocks) {
  const auto visit = [](const ScheduleRequest& request, const Schedule& schedule) {
    for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused})
      EXPECT_NO_THROW(lower_or_throw(schedule, overlap)) << text_of(request);
  };
  EXPECT_GT(for_each_schedule(GetParam(), visit), 0);
}

TEST_P(EverySchedule, KeepsItsClaims) {
  const ClaimCheck check = check_claims(GetParam());
  for (const std::string& wrong : check.wrong) ADD_FAILURE() << wrong;
  for (const char* what : {"makespan", "max_span"})
    EXPECT_TRUE(check.compared.contains(what)) << GetParam().name << " claims no " << what;
  for (const auto& [what, count] : check.compared) RecordProperty(what, count);
}

/// Names of tests cannot have dashes.
std::string test_name(const testing::TestParamInfo<ScheduleDef>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registered, EverySchedule,
                         testing::ValuesIn(Registry<ScheduleDef>::instance().all()), test_name);

TEST(ClaimCheck, NoticesAWrongClaim) {
  ScheduleDef liar = find_schedule("gpipe");
  liar.claims = [honest = liar.claims](const ScheduleRequest& request) {
    Claims claims = honest(request);
    if (request.shape.microbatches == 7) ++*claims.makespan;
    return claims;
  };
  liar.profiles.clear();
  // m = 7 is in 1..4p+1 for p = 2..8, with each of the costs and messages.
  const std::size_t lies = 7 * uniform_costs().size() * std::size(kMessages);
  EXPECT_EQ(check_claims(liar).wrong.size(), lies);
}

}  // namespace
}  // namespace bubblescope::tests
