// Links, bandwidth by message size, and the path of a message through a cluster.
#include "sim/model/cluster.h"

#include <gtest/gtest.h>

#include "sim/engine/simulate_shared.h"
#include "sim/ir/lower.h"
#include "sim/ir/program_draft.h"
#include "sim/model/traffic.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/uncontended.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

// 0.1 Gb/s is 0.0125 bytes per nanosecond: 9009 units of 1/720720.
TEST(Rate, TenthsOfAGigabitAreExact) {
  EXPECT_EQ(rate_of(0.1), 9009);
  EXPECT_EQ(rate_of(8), kLoadPerByte);
  EXPECT_EQ(rate_of(409.6), 4096 * 9009);
  EXPECT_EQ(error_of([&] { rate_of(0); }), "a bandwidth must be 0.001 to 1000000 Gb/s");
  EXPECT_EQ(error_of([&] { rate_of(1e7); }), "a bandwidth must be 0.001 to 1000000 Gb/s");
}

TEST(LinkSpeed, InterpolatesBetweenPoints) {
  const LinkSpeed speed{0, {{1000, 8}, {3000, 24}}};
  EXPECT_EQ(speed.rate(10), kLoadPerByte);        // the smallest measured size
  EXPECT_EQ(speed.rate(2000), 2 * kLoadPerByte);  // half way: 16 Gb/s
  EXPECT_EQ(speed.rate(9000), 3 * kLoadPerByte);
  EXPECT_EQ(speed.capacity(), 3 * kLoadPerByte);
}

/// Four ranks on two nodes, 8 Gb/s within them, 4 between; a NIC of 2 per node.
Cluster two_nodes() {
  Cluster cluster;
  cluster.node_of_rank = {0, 0, 1, 1};
  cluster.within_node = {5, {{0, 8}}};
  cluster.between_nodes = {9, {{0, 4}}};
  cluster.devices = {{"nic 0", {0, 1}, rate_of(2), Scope::kBetweenNodes},
                     {"nic 1", {2, 3}, rate_of(2), Scope::kBetweenNodes}};
  cluster.message_bytes = 100;
  return cluster;
}

Program forward_through_four() {
  return std::get<Program>(lower(traces::parse_schedule_text("0F0 | 1F0 | 2F0 | 3F0")));
}

// Within a node 100 bytes take 5 + 100; between nodes the NIC gives 0.25 bytes per nanosecond, less
// than the link: 9 + 400.
TEST(Traffic, AMessageIsAsFastAsTheSlowestResourceOnItsPath) {
  const Program program = forward_through_four();
  const Traffic traffic =
      route_messages(program, std::vector<Nanos>(program.size(), 10), two_nodes());
  std::vector<Nanos> messages;
  const std::vector<Nanos> durations = uncontended_durations(traffic);
  for (InstructionId id = 0; id < program.size(); ++id)
    if (is_message(program.instructions[id])) messages.push_back(durations[id]);
  EXPECT_EQ(messages, (std::vector<Nanos>{105, 409, 105}));
}

TEST(Traffic, NamesWhatIsShared) {
  const Program program = forward_through_four();
  const Traffic traffic =
      route_messages(program, std::vector<Nanos>(program.size(), 10), two_nodes());
  std::string names;
  for (const Resource& resource : traffic.resources) names += resource.name + "; ";
  EXPECT_EQ(names, "link 0>1; link 1>2; nic 0 out; nic 1 in; link 2>3; ");
}

TEST(Traffic, AnOwnLinkReplacesItsNodes) {
  Cluster cluster = two_nodes();
  cluster.links = {{0, 1, {50, {{0, 80}}}, 200}};
  const Program program = forward_through_four();
  const Traffic traffic = route_messages(program, std::vector<Nanos>(program.size(), 10), cluster);
  EXPECT_EQ(uncontended_durations(traffic)[1], 50 + 20);
}

// Two messages leave node 0 together, 0 to 2 and 1 to 3. Each takes 9 + 400 alone; they share both
// NICs, so 9 + 800.
TEST(Traffic, MessagesOfOneNodeShareItsNic) {
  ProgramDraft draft(4, 2);
  const Op send{0, 0, 0, OpKind::kSendForward, Pairing::kAlone};
  draft.add({send, kNoLane, 0, 2});
  draft.add({send, kNoLane, 1, 3});
  const Program program = std::get<Program>(std::move(draft).finish());
  const Traffic traffic = route_messages(program, std::vector<Nanos>{0, 0}, two_nodes());
  EXPECT_EQ(uncontended_durations(traffic), (std::vector<Nanos>{409, 409}));
  EXPECT_EQ(simulate_shared(program, traffic).timeline.end, (std::vector<Nanos>{809, 809}));
}

TEST(Traffic, NeedsANodeForEveryRank) {
  const Program program = forward_through_four();
  Cluster cluster = two_nodes();
  cluster.node_of_rank.pop_back();
  EXPECT_EQ(
      error_of([&] { route_messages(program, std::vector<Nanos>(program.size(), 10), cluster); }),
      "the cluster has 3 ranks for 4; place each of them on a node");
}

}  // namespace
}  // namespace bubblescope::tests
