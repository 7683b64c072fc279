// The registered schedules, their orders as the papers draw them, and the requests that they
// refuse.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedules/two_streams.h"
#include "schedules/virtual_stages.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

ScheduleRequest make_request(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches,
                             Profile profile = Profile::kNone) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  request.profile = profile;
  return request;
}

TEST(Registry, HoldsTheseSchedules) {
  std::vector<std::string> names;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) names.push_back(def.name);
  const std::vector<std::string> expected = {"1f1b",
                                             "1f1b-v",
                                             "1f1b-vocab",
                                             "1f1b-vocab-2",
                                             "bfs",
                                             "bpipe",
                                             "chimera",
                                             "chimera-doubling",
                                             "chimera-halving",
                                             "dualpipe",
                                             "dualpipev",
                                             "eager-1f1b",
                                             "forward-only",
                                             "gems",
                                             "gpipe",
                                             "group-interleaved",
                                             "hanayo",
                                             "interleaved",
                                             "interleaved-zb",
                                             "naive",
                                             "pipedream",
                                             "pipedream-2bw",
                                             "pipedream-vertical",
                                             "seq1f1b",
                                             "slimpipe",
                                             "terapipe",
                                             "v-auto",
                                             "v-half",
                                             "v-half-vocab",
                                             "v-half-vocab-2",
                                             "v-min",
                                             "zb-1p",
                                             "zb-2p",
                                             "zb-auto",
                                             "zb-h1",
                                             "zb-h2",
                                             "zb-v"};
  EXPECT_EQ(names, expected);
}

TEST(Registry, FindsSchedulesByTheFrameworksNames) {
  EXPECT_EQ(find_schedule("GPipe").name, "gpipe");
  EXPECT_EQ(find_schedule("1F1B").name, "1f1b");
  EXPECT_EQ(find_schedule("pipedream-flush").name, "1f1b");
  EXPECT_EQ(find_schedule("Interleaved1F1B").name, "interleaved");
  EXPECT_EQ(find_schedule("vpp").name, "interleaved");
  EXPECT_EQ(find_schedule("LoopedBFS").name, "bfs");
  EXPECT_EQ(find_schedule("ZBVZeroBubble").name, "zb-v");
  EXPECT_EQ(find_schedule("InterleavedZeroBubble").name, "interleaved-zb");
  EXPECT_EQ(find_schedule("ZB1P").name, "interleaved-zb");
  EXPECT_EQ(find_schedule("DualPipeV").name, "dualpipev");
}

/// A rank's order for p = 4, m = 8 as the literature draws it.
struct DrawnOrder {
  const char* schedule;
  std::int32_t chunks;
  std::size_t rank;
  const char* ops;
};

TEST(Schedules, RunTheOrdersOfThePapers) {
  const DrawnOrder drawn[] = {
      {"naive", 1, 2, "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2F6 2B6 2F7 2B7"},
      {"gpipe", 1, 0, "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7"},
      {"1f1b", 1, 0, "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7"},
      {"1f1b", 1, 3, "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7"},
      {"eager-1f1b", 1, 0, "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0B0 0F7 0B1 0B2 0B3 0B4 0B5 0B6 0B7"},
      {"eager-1f1b", 1, 1, "1F0 1F1 1F2 1F3 1F4 1B0 1F5 1B1 1F6 1B2 1F7 1B3 1B4 1B5 1B6 1B7"},
      {"interleaved", 2, 0,
       "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 "
       "0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7"},
      {"bfs", 2, 0,
       "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 4F0 4F1 4F2 4F3 4F4 4F5 4F6 4F7 4B0 4B1 4B2 4B3 4B4 4B5 "
       "4B6 4B7 0B0 0B1 0B2 0B3 0B4 0B5 0B6 0B7"},
      {"forward-only", 2, 1, "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 1F4 1F5 1F6 1F7 5F4 5F5 5F6 5F7"},
      {"zb-h1", 1, 0,
       "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 0I6 0W6 "
       "0I7 0W7"},
      {"zb-h1", 1, 2,
       "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 2I7 2W5 "
       "2W6 2W7"},
      {"zb-h1", 1, 3,
       "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 3W4 3W5 "
       "3W6 3W7"},
      {"zb-h2", 1, 0,
       "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0I0 0W0 0F7 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5 0I6 0W6 "
       "0I7 0W7"},
      {"zb-h2", 1, 3,
       "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3W0 3F7 3I7 3W1 3W2 3W3 3W4 3W5 "
       "3W6 3W7"},
      {"dualpipe", 1, 0,
       "0F0 0F1 0F2 7F4 7I4 7W4 7F5 (0F3;7B5)OVERLAP_F_B (7F6;0B0)OVERLAP_F_B 7B6 "
       "(7F7;0B1)OVERLAP_F_B 7B7 0I2 0W2 0I3 0W3"},
      {"dualpipe", 1, 1,
       "1F0 6F4 1F1 6F5 1F2 6B4 (6F6;1B0)OVERLAP_F_B (1F3;6B5)OVERLAP_F_B (6F7;1B1)OVERLAP_F_B "
       "6B6 1B2 6I7 1I3 6W7 1W3"},
  };
  for (const DrawnOrder& order : drawn) {
    const Schedule schedule =
        build_schedule(find_schedule(order.schedule), make_request(4, order.chunks, 8));
    EXPECT_EQ(order_text(schedule.order[order.rank]), order.ops) << order.schedule;
  }
}

TEST(ZbV, StartsItsLastRankAsThePaperDraws) {
  const Schedule schedule = build_schedule(find_schedule("zb-v"), make_request(4, 2, 8));
  const std::string drawn = "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 ";
  EXPECT_EQ(order_text(schedule.order[3]).substr(0, drawn.size()), drawn);
}

TEST(TwoStreamOrder, ReadsTheNotationOfThePhases) {
  // Stream 0 is stage 2 from micro-batch 0, stream 1 is stage 5 from micro-batch 4.
  schedules::TwoStreamOrder order({schedules::Stream{2, 0}, schedules::Stream{5, 4}}, 0);
  order.repeat(2, "F0 F1");
  order.repeat(1, "I1 I0 W W F0&B1 B0");
  EXPECT_EQ(order_text(std::move(order).take()),
            "2F0 5F4 2F1 5F5 5I4 2I0 5W4 2W0 (2F2;5B5)OVERLAP_F_B 2B1");
}

TEST(VirtualVisits, GoGroupByGroupThenChunkByChunk) {
  // p = 2, v = 2, m = 5 in groups of 3: Megatron's documented table.
  std::string forward;
  std::string backward;
  const schedules::Visits visits =
      schedules::make_virtual_visits(make_request(2, 2, 5).shape, 3, 0);
  for (const schedules::Visit& visit : visits.forward)
    forward += to_string(bubblescope::forward(visit.stage, visit.microbatch)) + " ";
  for (const schedules::Visit& visit : visits.backward)
    backward += to_string(bubblescope::backward(visit.stage, visit.microbatch)) + " ";
  EXPECT_EQ(forward, "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4 ");
  EXPECT_EQ(backward, "2B0 2B1 2B2 0B0 0B1 0B2 2B3 2B4 0B3 0B4 ");
}

struct Refused {
  const char* schedule;
  ScheduleRequest request;
  const char* says;  ///< a part of the message
};

ScheduleRequest with_groups(ScheduleRequest request, std::int32_t group_size) {
  request.shape.group_size = group_size;
  return request;
}

ScheduleRequest with_slices(ScheduleRequest request, std::int32_t slices) {
  request.shape.slices = slices;
  return request;
}

TEST(Refusals, SayTheRule) {
  const Refused refusals[] = {
      {"1f1b", make_request(4, 1, 3, Profile::kPytorch),
       "`microbatches` must be at least `pp` = 4"},
      {"interleaved", make_request(4, 2, 9, Profile::kPytorch),
       "must be a multiple of that, not 9"},
      {"interleaved", with_groups(make_request(4, 2, 8, Profile::kPytorch), 8),
       "pytorch chooses groups of 4 itself"},
      {"interleaved", make_request(4, 2, 7, Profile::kMegatron),
       "`microbatches` 7 leaves a last group of 3 micro-batches, fewer than `pp` 4"},
      {"interleaved", make_request(4, 2, 3, Profile::kMegatron), "not 4 <= 4 <= 3"},
      {"interleaved", with_groups(make_request(4, 2, 8, Profile::kMegatron), 2), "not 4 <= 2 <= 8"},
      {"interleaved", make_request(4, 1, 8, Profile::kMegatron), "`vpp` of at least 2"},
      {"interleaved", make_request(1, 2, 8, Profile::kMegatron), "`pp` of at least 2"},
      {"interleaved", make_request(4, 2, 6, Profile::kColossalai), "6 is not a multiple of 4"},
      {"interleaved", with_groups(make_request(4, 2, 8), 9), "is more than `microbatches` 8"},
      {"interleaved", with_groups(make_request(4, 2, 8), 0), "must be at least 1"},
      {"dualpipe", make_request(3, 1, 8), "`pp` must be even"},
      {"dualpipe", make_request(4, 1, 9), "`microbatches` must be even"},
      {"dualpipe", make_request(4, 1, 6), "at least 2 * `pp` = 8"},
      {"dualpipev", make_request(4, 2, 7), "at least 2 * `pp` = 8"},
      {"zb-v", make_request(4, 2, 8, Profile::kColossalai), "not implemented"},
      {"zb-v", make_request(4, 3, 8), "always has 2 chunks"},
      {"bfs", make_request(4, 2, 8, Profile::kMegatron), "has no such schedule (known in pytorch)"},
      {"naive", make_request(4, 1, 8, Profile::kPytorch), "leave `profile` out"},
      {"forward-only", make_request(4, 2, 8, Profile::kDeepspeed), "one chunk per rank"},
      {"gpipe", with_slices(make_request(4, 1, 8), 2), "does not slice sequences"},
  };
  for (const Refused& refused : refusals) {
    try {
      build_schedule(find_schedule(refused.schedule), refused.request);
      ADD_FAILURE() << refused.schedule << " was built; it should say: " << refused.says;
    } catch (const Error& error) {
      const std::string says = refused.says;
      bool is_usage = false;
      for (const char* never : {"always has", "does not slice", "must be at least 1"})
        is_usage = is_usage || says.find(never) != std::string::npos;
      EXPECT_EQ(error.fault(), is_usage ? Fault::kUsage : Fault::kProblem) << says;
      EXPECT_NE(std::string(error.what()).find(refused.says), std::string::npos) << error.what();
    }
  }
}

TEST(Refusals, AllowWhatTheFrameworksAllow) {
  // Fewer micro-batches than ranks in one PyTorch round; an uneven last group of p in Megatron.
  EXPECT_NO_THROW(
      build_schedule(find_schedule("interleaved"), make_request(4, 2, 3, Profile::kPytorch)));
  EXPECT_NO_THROW(build_schedule(find_schedule("interleaved"),
                                 with_groups(make_request(4, 2, 9, Profile::kMegatron), 5)));
  EXPECT_NO_THROW(
      build_schedule(find_schedule("1f1b"), make_request(4, 1, 1, Profile::kDeepspeed)));
  EXPECT_NO_THROW(build_schedule(find_schedule("zb-v"), make_request(4, 1, 1, Profile::kPytorch)));
}

// A refusal names the profiles that a schedule is known in.
TEST(Profiles, OfAScheduleBuildItInSomeShape) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Profile profile : def.profiles) {
      bool is_built = false;
      for (const std::int32_t ranks : {2, 4})
        for (const std::int32_t chunks : {1, 2})
          for (const std::int32_t microbatches : {4, 8, 16}) {
            ScheduleRequest request = make_request(ranks, chunks, microbatches, profile);
            request.shape = fill_in_implied(def, request.shape);
            is_built = is_built || refuse_schedule(def, request).empty();
          }
      EXPECT_TRUE(is_built) << def.name << " " << to_string(profile);
      EXPECT_EQ(refuse_profile(def, profile), "");
    }
  const ScheduleDef& zb_v = find_schedule("zb-v");
  EXPECT_EQ(refuse_profile(zb_v, Profile::kMegatron), "megatron has no such schedule");
  EXPECT_NE(refuse_profile(zb_v, Profile::kColossalai), "");
  EXPECT_EQ(refuse_profile(zb_v, Profile::kPytorch215), "");
  EXPECT_EQ(refuse_profile(zb_v, Profile::kNone), "");
}

}  // namespace
}  // namespace bubblescope::tests
