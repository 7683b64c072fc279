// Tests where a profile is placed in its job.
#include "traces/measured/profile_place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/rank_profile.h"

namespace bubblescope::tests {
namespace {

TEST(ProfilePlace, IsThatInThePipelineGroup) {
  traces::ChromeEvents events;
  events.distributed_rank = 6;
  events.world_size = 8;
  events.groups = {{"default_pg", {0, 1, 2, 3, 4, 5, 6, 7}},
                   {"mesh_pp", {2, 6}},
                   {"mesh_tp", {6, 7}},
                   {"mesh_dp_shard", {4, 6}}};
  traces::ProfilePlace place = traces::locate_in_job(events, "rank6.json");
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.replica, 2);
  EXPECT_EQ(place.ranks, 2);
  EXPECT_FALSE(place.is_tensor_peer);
  events.distributed_rank = 7;
  EXPECT_TRUE(traces::locate_in_job(events, "rank7.json").is_tensor_peer);
}

TEST(ProfilePlace, RefusesRanksThatNoJobHas) {
  // 4294967298 would be 2 if it were cut to 32 bits.
  for (const std::int64_t rank : {std::int64_t{4294967298}, std::int64_t{-1}}) {
    traces::ChromeEvents events;
    events.distributed_rank = rank;
    EXPECT_TRUE(fails_with([&] { traces::locate_in_job(events, "rank2.json"); },
                           "rank2.json: /distributedInfo has rank"));
    events.distributed_rank = 1;
    events.groups = {{"mesh_pp", {1, rank}}};
    EXPECT_EQ(error_of([&] { traces::locate_in_job(events, "rank1.json"); }),
              fmt::format("rank1.json: /distributedInfo has rank {}, but ranks are 0 to 16777216; "
                          "correct it, or leave the file out",
                          rank));
  }
}

/// Events of rank 1 in a process that ran a pipeline of four ranks, and two of two ranks.
traces::ChromeEvents two_layouts() {
  traces::ChromeEvents events;
  events.distributed_rank = 1;
  events.world_size = 4;
  events.groups = {{"default_pg", {0, 1, 2, 3}},
                   {"mesh_dp", {1}},
                   {"mesh_pp", {0, 1, 2, 3}},
                   {"mesh_dp", {1, 3}},
                   {"mesh_pp", {0, 1}}};
  return events;
}

TEST(ProfilePlace, OfSeveralLayoutsIsTheOneThatSendsTheMessages) {
  traces::ChromeEvents events = two_layouts();
  events.peers["[0, 1]"] = {0};
  const traces::ProfilePlace place = traces::locate_in_job(events, "rank1.json");
  EXPECT_EQ(place.ranks, 2);
  EXPECT_EQ(place.replica, 0);
  EXPECT_EQ(place.data_rank, 0);
  EXPECT_EQ(place.replicas, 2);
  events.peers = {{"[0, 1, 2, 3]", {0, 2}}};
  EXPECT_EQ(traces::locate_in_job(events, "rank1.json").ranks, 4);
}

// PyTorch gives a mesh over all ranks no group of its own.
TEST(ProfilePlace, RefusesMessagesToRanksOfAnotherLayout) {
  traces::ChromeEvents events = two_layouts();
  events.groups.erase(events.groups.begin() + 2);
  events.peers = {{"[0, 1, 2, 3]", {0, 2}}};
  EXPECT_TRUE(fails_with([&] { traces::locate_in_job(events, "rank1.json"); },
                         "rank 1 exchanges messages with rank 2"));
  events.peers = {{"[0, 1, 2, 3]", {0}}, {"[1, 3]", {1}}, {"[0, 1, ..., 63]", {5}}};
  EXPECT_EQ(traces::locate_in_job(events, "rank1.json").ranks, 2);
}

TEST(ProfilePlace, KnowsThePeersOfMessages) {
  RankProfile profile(1, 4);
  profile.groups(R"({"pg_desc":"mesh_pp","ranks":[0,1]})").annotation("PP:1F0", 0, 10);
  profile.event("cpu_op", "record_param_comms", 12, 1, 1,
                R"("Collective name":"send","Dst Rank":2,"Process Group Ranks":"[0, 1, 2, 3]")");
  EXPECT_EQ(error_of([&] { profile.read(); }),
            "rank1.json: rank 1 exchanges messages with rank 2, which is not in its pipeline's "
            "group 'mesh_pp': the process has groups of several layouts, and nothing says which "
            "ranks this pipeline has; run each layout by processes of its own");
}

}  // namespace
}  // namespace bubblescope::tests
