// Workloads of other simulators: what is read, and what does not fit together.
#include "traces/workloads/workload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/files/protobuf.h"
#include "traces/workloads/check_workload.h"

namespace bubblescope::tests {
namespace {

using traces::ChakraFile;
using traces::check_workload;
using traces::parse_chakra;
using traces::parse_goal;
using traces::Workload;
using traces::WorkloadVerdict;

WorkloadVerdict check_goal(const std::string& text) {
  return check_workload(parse_goal(text, "step.goal"));
}

std::string message_of(const std::string& text) {
  return error_of([&] { parse_goal(text, "step.goal"); });
}

TEST(Workload, ReadsTheGrammarOfGoal) {
  const Workload read = parse_goal(
      "// made by hand\n/* two\nlines */ num_ranks 2\n\nrank 0 {\n"
      "l1: calc 100 cpu 0\ncalc 5\nl2: send 16b to 1 tag 7 cpu 1 nic 0\nl2 requires l1\n"
      "l2 irequires l1\n}\nrank 1 { recv 16b from -1 tag -1 }\n",
      "step.goal");
  ASSERT_EQ(read.ranks.size(), 2u);
  ASSERT_EQ(read.ranks[0].size(), 3u);
  const traces::WorkloadJob& send = read.ranks[0][2];
  EXPECT_EQ(send.name, "l2 (line 8)");
  EXPECT_EQ(send.peer, 1);
  EXPECT_EQ(send.tag, 7);
  EXPECT_EQ(send.bytes, 16);
  EXPECT_EQ(send.waits_for, std::vector<std::uint32_t>{0});
  EXPECT_EQ(send.starts_after, std::vector<std::uint32_t>{0});
  EXPECT_FALSE(read.ranks[1][0].peer.has_value());
  EXPECT_FALSE(read.ranks[1][0].tag.has_value());
}

TEST(Workload, SaysWhereGoalIsDamaged) {
  EXPECT_EQ(message_of("num_ranks 0\n"),
            "step.goal, line 1: num_ranks is 0, 1 to 1048576 can be read");
  EXPECT_NE(
      message_of("num_ranks 1\nrank 1 {\n}\n").find("line 2: rank 1 is not below num_ranks 1"),
      std::string::npos);
  EXPECT_NE(message_of("num_ranks 1\nrank 0 {\nl1 requires l2\n}\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(message_of("num_ranks 1\nrank 0 {\ncalc 99999999999999999999\n}\n")
                .find("to 9223372036854775807 was expected"),
            std::string::npos);
  EXPECT_NE(message_of("num_ranks 1\nrank 0 {\ncalc many\n}\n").find("a whole number from 0 to"),
            std::string::npos);
  EXPECT_NE(message_of("num_ranks 1\nrank 0 {\ncalc 1\n").find("'}' was expected"),
            std::string::npos);
  EXPECT_NE(message_of("num_ranks 1\nrank 0 {\nsend 1b to -1\n}\n").find("-1 is not a rank"),
            std::string::npos);
}

TEST(Workload, RefusesNumbersThatGoalCannotHold) {
  const auto message_of_line = [](const std::string& line) {
    return message_of("num_ranks 2\nrank 0 {\n" + line + "\n}\n");
  };
  for (const char* line :
       {"calc -5", "send -16b to 1", "recv -16b from 1", "send 1b to 1 tag 4294967295"})
    EXPECT_NE(message_of_line(line).find("line 3"), std::string::npos) << line;
  EXPECT_EQ(message_of_line("send 1b to 1 tag 4294967294"), "");
}

TEST(Workload, MessagesMustHaveAPartnerOfTheirSize) {
  const WorkloadVerdict verdict = check_goal(
      "num_ranks 2\nrank 0 {\ns: send 16b to 1 tag 7\nt: send 1b to 1 tag 8\nu: send 1b to 5\n}\n"
      "rank 1 {\nr: recv 8b from 0 tag 7\nq: recv 1b from 0 tag 9\n}\n");
  ASSERT_EQ(verdict.problems.size(), 4u);
  EXPECT_EQ(to_string(verdict.problems[0]),
            "s (line 3) sends 16 bytes to rank 1 with tag 7, where r (line 8) receives 8");
  EXPECT_EQ(to_string(verdict.problems[1]),
            "t (line 4) sends 1 byte to rank 1 with tag 8, where nothing receives it");
  EXPECT_EQ(to_string(verdict.problems[2]),
            "u (line 5) sends 1 byte to rank 5 with tag 0, but the workload has 2 ranks");
  EXPECT_EQ(to_string(verdict.problems[3]),
            "q (line 9) receives 1 byte from rank 0 with tag 9, which nobody sends");
  EXPECT_EQ(verdict.messages, 1u);
  // A receive without a send waits for ever, and so does an unmatched send that is not
  // buffered.
  EXPECT_EQ(verdict.eager_hang,
            "q (line 9) of rank 1 receives 1 byte from rank 0 with tag 9, which nobody sends");
  EXPECT_NE(verdict.rendezvous_hang, "");
  const WorkloadVerdict lost = check_goal("num_ranks 2\nrank 0 {\ns: send 1b to 1\n}\n");
  EXPECT_EQ(lost.eager_hang, "");
  EXPECT_NE(lost.rendezvous_hang, "");
}

TEST(Workload, TwoRanksThatReceiveFirstHang) {
  const std::string rank = "rank {0} {\nr: recv 1b from {1}\ns: send 1b to {1}\ns requires r\n}\n";
  const auto fill = [&](char own, char other) {
    std::string text;
    for (std::size_t at = 0; at < rank.size(); ++at)
      if (rank.substr(at, 3) == "{0}" || rank.substr(at, 3) == "{1}")
        text += rank[at + 1] == '0' ? own : other, at += 2;
      else
        text += rank[at];
    return text;
  };
  const WorkloadVerdict verdict = check_goal("num_ranks 2\n" + fill('0', '1') + fill('1', '0'));
  EXPECT_TRUE(verdict.problems.empty());
  for (const std::string& hang : {verdict.eager_hang, verdict.rendezvous_hang}) {
    EXPECT_NE(hang.find("r (line 3) of rank 0"), std::string::npos) << hang;
    EXPECT_NE(hang.find("s (line 9) of rank 1"), std::string::npos) << hang;
  }
}

TEST(Workload, TwoRanksThatSendFirstHangWhereSendsWait) {
  const WorkloadVerdict verdict = check_goal(
      "num_ranks 2\nrank 0 {\ns: send 9b to 1\nr: recv 9b from 1\nr requires s\n}\n"
      "rank 1 {\ns: send 9b to 0\nr: recv 9b from 0\nr requires s\n}\n");
  EXPECT_TRUE(verdict.problems.empty());
  EXPECT_EQ(verdict.eager_hang, "");
  EXPECT_NE(verdict.rendezvous_hang, "");
  // A receive that only needs the send to have started is posted beside it.
  EXPECT_EQ(
      check_goal("num_ranks 2\nrank 0 {\ns: send 9b to 1\nr: recv 9b from 1\nr irequires s\n}\n"
                 "rank 1 {\ns: send 9b to 0\nr: recv 9b from 0\nr irequires s\n}\n")
          .rendezvous_hang,
      "");
}

TEST(Workload, AJobThatWaitsForItselfHangs) {
  EXPECT_EQ(check_goal("num_ranks 1\nrank 0 {\nl: calc 1\nl requires l\n}\n").eager_hang,
            "l (line 3) of rank 0 waits for itself");
}

TEST(Workload, SaysWhatItDoesNotMatch) {
  const WorkloadVerdict verdict = check_goal(
      "num_ranks 2\nrank 0 {\nsend 1b to 1\nsend 1b to 1\nsend 1b to 1 tag 3\n}\n"
      "rank 1 {\nrecv 1b from 0\nrecv 1b from 0\nrecv 1b from -1 tag 3\n}\n");
  EXPECT_TRUE(verdict.problems.empty());
  EXPECT_EQ(verdict.shared_matches, 2u);
  EXPECT_EQ(verdict.wildcards, 1u);
  const WorkloadVerdict more = check_goal(
      "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 3\n}\n"
      "rank 1 {\nrecv 1b from -1 tag 3\nrecv 1b from -1 tag -1\n}\n");
  ASSERT_EQ(more.problems.size(), 1u);
  EXPECT_EQ(to_string(more.problems[0]),
            "line 6 is the first of 2 receives from any rank or with any tag, for 1 send");
  EXPECT_NE(more.eager_hang, "");
}

/// A node as its writer would make it: integers as int64, and the group's name.
struct NodeText {
  std::uint64_t id = 0;
  std::uint64_t type = 4;
  std::vector<std::uint64_t> waits_for = {};
  std::vector<std::pair<std::string, std::uint64_t>> numbers = {};
  std::string group = {};
};

ChakraFile make_file(const std::string& path, const std::vector<NodeText>& nodes) {
  traces::ProtobufMessage metadata;
  metadata.text(1, "0.0.4");
  ChakraFile file{path, with_length(metadata)};
  for (const NodeText& node : nodes) {
    traces::ProtobufMessage message;
    message.integer(1, node.id).text(2, "n").integer(3, node.type).integers(5, node.waits_for);
    for (const auto& [name, value] : node.numbers) {
      traces::ProtobufMessage attribute;
      attribute.text(1, name).integer(9, value);
      message.message(10, attribute);
    }
    if (!node.group.empty()) {
      traces::ProtobufMessage attribute;
      attribute.text(1, "pg_name").text(29, node.group);
      message.message(10, attribute);
    }
    file.content += with_length(message);
  }
  return file;
}

NodeText collective(std::uint64_t id, std::uint64_t type, std::uint64_t bytes,
                    std::vector<std::uint64_t> waits_for = {}, const std::string& group = "") {
  return {id, 7, std::move(waits_for), {{"comm_type", type}, {"comm_size", bytes}}, group};
}

TEST(Workload, CollectivesMustBeTheSameOnAllRanks) {
  const auto check = [](const std::vector<NodeText>& first, const std::vector<NodeText>& second) {
    return check_workload(parse_chakra({make_file("s.0.et", first), make_file("s.1.et", second)}));
  };
  EXPECT_TRUE(check({collective(1, 0, 64)}, {collective(5, 0, 64)}).problems.empty());
  EXPECT_EQ(check({collective(1, 0, 64)}, {collective(5, 2, 64)}).problems.size(), 1u);
  EXPECT_EQ(check({collective(1, 0, 64)}, {collective(5, 0, 32)}).problems.size(), 1u);
  EXPECT_EQ(
      to_string(
          check({collective(1, 0, 64), collective(2, 0, 64)}, {collective(5, 0, 64)}).problems[0]),
      "'n' (node 2) is collective 2 of its group, but rank 1 has only 1");
  // Two groups whose members enter them in different orders wait for each other.
  const WorkloadVerdict crossed =
      check({collective(1, 0, 8, {}, "a"), collective(2, 0, 8, {1}, "b")},
            {collective(1, 0, 8, {}, "b"), collective(2, 0, 8, {1}, "a")});
  EXPECT_TRUE(crossed.problems.empty());
  EXPECT_NE(crossed.eager_hang, "");
}

TEST(Workload, ChakraMessagesAreMatched) {
  const auto message = [](std::uint64_t type, std::uint64_t bytes) {
    return NodeText{
        0, type, {}, {{"comm_src", 0}, {"comm_dst", 1}, {"comm_tag", 3}, {"comm_size", bytes}}};
  };
  const auto check = [&](std::uint64_t sent, std::uint64_t received) {
    return check_workload(parse_chakra(
        {make_file("s.1.et", {message(6, received)}), make_file("s.0.et", {message(5, sent)})}));
  };
  EXPECT_TRUE(check(16, 16).problems.empty());
  EXPECT_EQ(check(16, 16).messages, 1u);
  ASSERT_EQ(check(16, 8).problems.size(), 1u);
  EXPECT_EQ(check(16, 8).problems[0].rank, 0);
}

TEST(Workload, RefusesAnIncompleteOrDamagedSet) {
  const ChakraFile first = make_file("s.0.et", {{}});
  EXPECT_EQ(error_of([&] {
              parse_chakra({first, make_file("s.2.et", {{}})});
            }),
            "s.2.et: 2 files of s given; give those of ranks 0 to the last, as in s.*.et");
  EXPECT_EQ(error_of([&] {
              parse_chakra({first, first});
            }),
            "s.0.et: 2 files of s given; give those of ranks 0 to the last, as in s.*.et");
  EXPECT_EQ(error_of([&] {
              parse_chakra({first, make_file("t.1.et", {{}})});
            }),
            "s and t are of different sets; check one set at a time");
  EXPECT_EQ(error_of([&] {
              parse_chakra({make_file("s.0.et", {{0, 4, {7}}})});
            }),
            "s.0.et, node 0: 'n' (node 0) waits for the id 7, which no node of this file has");
  const ChakraFile whole = make_file("s.0.et", {collective(1, 0, 64), collective(2, 0, 64, {1})});
  const std::size_t metadata = make_file("s.0.et", {}).content.size();
  for (std::size_t size = 0; size < whole.content.size(); ++size) {
    if (size == metadata ||
        size == metadata + 1 + static_cast<unsigned char>(whole.content[metadata]))
      continue;  // cut between two nodes, it is a whole file
    EXPECT_TRUE(fails_with(
        [&] {
          parse_chakra({{"s.0.et", whole.content.substr(0, size)}});
        },
        ": the file is damaged or cut short here; write it again"))
        << size;
  }
}

}  // namespace
}  // namespace bubblescope::tests
