// Flows that share resources, compared with results by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "sim/analysis/link_use.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/program_draft.h"

namespace bubblescope::tests {
namespace {

/// A flow of so many bytes, from `start` on, over resources with their bytes per nanosecond.
struct TestFlow {
  Bytes bytes;
  std::vector<std::uint32_t> path;
  Nanos begin = 0;
};

/// Independent messages, each with its own start, which is its latency.
struct Flows {
  Program program;
  Traffic traffic;
};

Flows let_flow(const std::vector<Rate>& bytes_per_nano, const std::vector<TestFlow>& flows) {
  Flows made;
  ProgramDraft draft(2, flows.size());
  for (const Rate capacity : bytes_per_nano)
    made.traffic.resources.push_back({"link", capacity * kLoadPerByte});
  for (const TestFlow& flow : flows) {
    Op op = forward(0, 0);
    op.kind = OpKind::kSendForward;
    const InstructionId id = draft.add({op, kNoLane, 0, 1});
    made.traffic.fixed.push_back(flow.begin);
    Rate max_rate = made.traffic.resources[flow.path[0]].capacity;
    for (const std::uint32_t resource : flow.path)
      max_rate = std::min(max_rate, made.traffic.resources[resource].capacity);
    made.traffic.flows.push_back({id, flow.bytes * kLoadPerByte, max_rate, id});
    made.traffic.path_resources.insert(made.traffic.path_resources.end(), flow.path.begin(),
                                       flow.path.end());
    made.traffic.path_begin.push_back(
        static_cast<std::uint32_t>(made.traffic.path_resources.size()));
  }
  made.program = std::get<Program>(std::move(draft).finish());
  return made;
}

std::vector<Nanos> ends(const std::vector<Rate>& bytes_per_nano,
                        const std::vector<TestFlow>& flows) {
  const Flows made = let_flow(bytes_per_nano, flows);
  return simulate_shared(made.program, made.traffic).timeline.end;
}

using Ends = std::vector<Nanos>;

TEST(Sharing, OneFlowHasTheWholeLink) {
  EXPECT_EQ(ends({10}, {{1000, {0}}}), Ends{100});
  EXPECT_EQ(ends({10}, {{1001, {0}}}), Ends{101});  // the first whole nanosecond
  EXPECT_EQ(ends({10}, {{1000, {0}, 7}}), Ends{107});
}

TEST(Sharing, TwoEqualFlowsTakeTwiceTheTime) {
  EXPECT_EQ(ends({10}, {{1000, {0}}, {1000, {0}}}), (Ends{200, 200}));
}

TEST(Sharing, SevenFlowsTakeSevenTimesTheTimeToTheNanosecond) {
  EXPECT_EQ(ends({10}, std::vector<TestFlow>(7, {1000, {0}})), Ends(7, 700));
}

// Alone each takes 100. The first has 500 bytes left when the second comes at 50; they take 100 at
// half the rate, in which the second sends 500 too, and then needs 50 for its other 500.
TEST(Sharing, ALaterFlowSlowsTheFirstOnlyFromThenOn) {
  EXPECT_EQ(ends({10}, {{1000, {0}}, {1000, {0}, 50}}), (Ends{150, 200}));
}

// Resource 0 gives 6 to its two flows; the second is limited to 3 there, so the third has 9 of the
// 12 of resource 1: 900 bytes take 300, 300 and 100. When the third has ended, nothing changes.
TEST(Sharing, CapacityThatABottleneckLeavesGoesToTheOthers) {
  EXPECT_EQ(ends({6, 12}, {{900, {0}}, {900, {0, 1}}, {900, {1}}}), (Ends{300, 300, 100}));
}

// A flow limited to 2 leaves 8 of 10 to the other; the second ends at 100, the first at 500.
TEST(Sharing, AFlowAtItsMaximumLeavesTheRestToTheOthers) {
  Flows made = let_flow({10}, {{1000, {0}}, {800, {0}}});
  made.traffic.flows[0].max_rate = 2 * kLoadPerByte;
  EXPECT_EQ(simulate_shared(made.program, made.traffic).timeline.end, (Ends{500, 100}));
}

TEST(Sharing, CountsWhatPassesEveryResource) {
  const Flows made = let_flow({10, 5}, {{1000, {0}}, {1000, {0}, 50}, {10, {1}, 300}});
  const std::vector<ResourceUse> uses = simulate_shared(made.program, made.traffic).uses;
  EXPECT_EQ(static_cast<Load>(uses[0].load), 2000 * kLoadPerByte);
  EXPECT_EQ(uses[0].busy, 200);
  EXPECT_EQ(uses[0].shared, 100);
  EXPECT_EQ(static_cast<Load>(uses[1].load), 10 * kLoadPerByte);
  EXPECT_EQ(uses[1].busy, 2);
  EXPECT_EQ(uses[1].shared, 0);
}

// 16 TB are more than 2^63 units.
TEST(Sharing, CountsMoreBytesThanALoadHolds) {
  const Nanos tb = 1'000'000'000'000;
  const Flows made = let_flow({1000}, {{8 * tb, {0}}, {8 * tb, {0}}});
  const std::vector<ResourceUse> uses = simulate_shared(made.program, made.traffic).uses;
  const std::vector<LinkUse> links = account_for_links(made.traffic, uses, 32'000'000'000);
  EXPECT_EQ(links[0].bytes, 16 * tb);
  EXPECT_DOUBLE_EQ(links[0].utilization, 0.5);
}

/// Flows over one to three of the resources, which have 1 to 40 bytes per nanosecond.
Flows random_flows(std::mt19937& random, int count, Nanos latest) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  std::vector<Rate> capacities;
  for (int resource = 0; resource < 5; ++resource) capacities.push_back(1 + below(40));
  std::vector<TestFlow> flows;
  for (int flow = 0; flow < count; ++flow) {
    std::vector<std::uint32_t> all{0, 1, 2, 3, 4};
    std::shuffle(all.begin(), all.end(), random);
    all.resize(static_cast<std::size_t>(1 + below(3)));
    flows.push_back({1 + below(2000), all, below(latest)});
  }
  Flows made = let_flow(capacities, flows);
  for (Flow& flow : made.traffic.flows)
    if (below(4) == 0) flow.max_rate = flow.max_rate / 2 + below(kLoadPerByte / 4);
  return made;
}

// Max-min fairness has one solution: every flow either has its maximum, or passes a resource that
// is full and on which no flow has more. Rounding leaves less than one unit per flow.
TEST(Sharing, IsMaxMinFair) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    constexpr int kFlows = 12;
    const Flows made = random_flows(random, kFlows, 1);
    FairShare shares(made.traffic);
    for (FlowId flow = 0; flow < kFlows; ++flow) shares.begin(flow, 0);
    shares.settle(0);
    std::vector<Rate> taken(made.traffic.resources.size(), 0);
    std::vector<Rate> largest(made.traffic.resources.size(), 0);
    for (FlowId flow = 0; flow < kFlows; ++flow)
      for (const std::uint32_t resource : made.traffic.path(flow)) {
        taken[resource] += shares.rate(flow);
        largest[resource] = std::max(largest[resource], shares.rate(flow));
      }
    for (std::size_t resource = 0; resource < taken.size(); ++resource)
      ASSERT_LE(taken[resource], made.traffic.resources[resource].capacity) << round;
    for (FlowId flow = 0; flow < kFlows; ++flow) {
      if (shares.rate(flow) == made.traffic.flows[flow].max_rate) continue;
      const auto path = made.traffic.path(flow);
      ASSERT_TRUE(std::any_of(path.begin(), path.end(),
                              [&](std::uint32_t resource) {
                                return taken[resource] >
                                           made.traffic.resources[resource].capacity - kFlows &&
                                       shares.rate(flow) + kFlows >= largest[resource];
                              }))
          << "round " << round << ", flow " << flow;
    }
  }
}

/// Rates by progressive filling, recomputed for every nanosecond, and flows that advance by them.
class NanosecondByNanosecond {
 public:
  explicit NanosecondByNanosecond(const Traffic& traffic) : traffic_(traffic) {
    for (const Flow& flow : traffic.flows) left_.push_back(flow.load);
    ends_.assign(left_.size(), 0);
  }

  Ends run() && {
    for (Nanos now = 0; std::count(ends_.begin(), ends_.end(), 0) > 0; ++now) {
      const std::vector<Rate> shares = assign_rates(now);
      for (std::size_t flow = 0; flow < left_.size(); ++flow) {
        left_[flow] -= shares[flow];
        if (left_[flow] <= 0 && ends_[flow] == 0) ends_[flow] = now + 1;
      }
    }
    return ends_;
  }

 private:
  bool passes(std::size_t flow, std::size_t resource) const {
    const auto path = traffic_.path(traffic_.flows[flow].path);
    return std::find(path.begin(), path.end(), resource) != path.end();
  }

  /// The rate that a resource can give to each of its flows without a rate yet; empty if all have
  /// one.
  std::optional<Rate> fair_share(std::size_t resource, const std::vector<Rate>& shares,
                                 const std::vector<bool>& open) const {
    Rate left = traffic_.resources[resource].capacity;
    Rate sharers = 0;
    for (std::size_t flow = 0; flow < left_.size(); ++flow) {
      if (!passes(flow, resource)) continue;
      left -= shares[flow];
      if (open[flow]) ++sharers;
    }
    return sharers > 0 ? std::optional(left / sharers) : std::nullopt;
  }

  std::vector<Rate> assign_rates(Nanos now) const {
    std::vector<Rate> shares(left_.size(), 0);
    std::vector<bool> open(left_.size());
    for (std::size_t flow = 0; flow < left_.size(); ++flow)
      open[flow] = left_[flow] > 0 && traffic_.fixed[flow] <= now;
    while (std::count(open.begin(), open.end(), true) > 0) {
      Rate least = std::numeric_limits<Rate>::max();
      std::optional<std::size_t> tightest;
      for (std::size_t resource = 0; resource < traffic_.resources.size(); ++resource)
        if (const auto share = fair_share(resource, shares, open); share && *share < least) {
          least = *share;
          tightest = resource;
        }
      const auto slowest = [&] {
        std::optional<std::size_t> found;
        for (std::size_t flow = 0; flow < left_.size(); ++flow)
          if (open[flow] && traffic_.flows[flow].max_rate <= least) found = flow;
        return found;
      }();
      for (std::size_t flow = 0; flow < left_.size(); ++flow) {
        if (!open[flow] || (slowest ? flow != *slowest : !passes(flow, *tightest))) continue;
        shares[flow] = slowest ? traffic_.flows[flow].max_rate : least;
        open[flow] = false;
      }
    }
    return shares;
  }

  const Traffic& traffic_;
  std::vector<Load> left_;
  Ends ends_;
};

TEST(Sharing, AgreesWithASimulationPerNanosecond) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const Flows made = random_flows(random, 2 + round % 6, 100);
    const Ends found = simulate_shared(made.program, made.traffic).timeline.end;
    ASSERT_EQ(found, NanosecondByNanosecond(made.traffic).run()) << "round " << round;
  }
}

}  // namespace
}  // namespace bubblescope::tests
