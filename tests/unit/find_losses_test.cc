// Every schedule in every format, written and read back.
#include "traces/schedules/find_losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "traces/files/format.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Schedule parse(const std::string& text) { return traces::parse_schedule_text(text); }

/// Removes what a reader cannot know of a file, and what says no more than the order: its name,
/// the sizes of groups, and recomputations that are full.
Schedule without_names(Schedule schedule) {
  schedule.name.clear();
  schedule.shape.group_size.reset();
  std::vector<Recompute>& policies = schedule.recompute_of_stage;
  if (std::count(policies.begin(), policies.end(), Recompute::kSelective) == 0) policies.clear();
  return schedule;
}

/// Writes and reads back, in every format; what differs must be among the losses.
void expect_losses_named(const ValidSchedule& schedule) {
  for (const traces::ScheduleFormat& format : Registry<traces::ScheduleFormat>::instance().all()) {
    if (!format.read || !format.write) continue;
    std::optional<Schedule> read;
    try {
      read = format.read(format.write(schedule), "file");
    } catch (const Error&) {
      continue;  // it is refused, not changed
    }
    const std::vector<std::string> losses = traces::find_losses(schedule, *read);
    Schedule expected = without_names(schedule);
    if (format.name == "deepspeed" && expected.posted.empty()) read->posted.clear();
    EXPECT_EQ(losses.empty(), without_names(*read) == expected)
        << schedule->name << " as " << format.name;
    EXPECT_TRUE(losses.empty() || format.name != "native") << schedule->name << ": " << losses[0];
  }
}

TEST(FindLosses, NamesWhateverAFormatLeavesOut) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    ScheduleRequest request;
    request.shape.ranks = 4;
    request.shape.chunks = def.implied_chunks.value_or(1);
    request.shape.microbatches = 8;
    request.shape.slices = def.slices_sequences ? 4 : 1;
    if (!refuse_schedule(def, request).empty()) continue;
    expect_losses_named(build_schedule(def, request));
  }
  const ValidSchedule plain =
      require_valid(parse("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3 | 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"));
  expect_losses_named(with_recompute(plain, {Recompute::kSelective}));
  expect_losses_named(with_recompute(plain, {Recompute::kFull, Recompute::kNone}));
  expect_losses_named(with_offload(plain, {}));
  expect_losses_named(shard_stages(plain));
}

TEST(FindLosses, SaysWhatBecomesOfIt) {
  const ValidSchedule plain = require_valid(parse("0F0 0B0"));
  const ValidSchedule selective = with_recompute(plain, {Recompute::kSelective});
  const Schedule read = parse(traces::write_schedule_text(selective));
  EXPECT_EQ(traces::find_losses(selective, read),
            std::vector<std::string>{"what is recomputed, so everything is"});
}

/// The only loss of a native file that is written as text.
std::string find_loss_as_text(const std::string& rest) {
  const std::string file =
      R"({"format":"bubblescope-schedule/1","name":"x","shape":{"ranks":)" + rest + "]}";
  const Schedule schedule = traces::read_native_schedule(file, "x.json");
  const std::vector<std::string> losses =
      traces::find_losses(schedule, parse(traces::write_schedule_text(schedule)));
  EXPECT_EQ(losses.size(), 1u) << rest;
  return losses.empty() ? "" : losses[0];
}

// A reader of text derives the shape from the ops: these would become legal.
TEST(FindLosses, NamesWhatMakesAScheduleIllegal) {
  EXPECT_EQ(
      find_loss_as_text(R"(1,"chunks":1,"microbatches":2},"placement":[0],"order":["0F0 0B0")"),
      "the ranks, micro-batches and slices that have no ops, so it has only the others");
  EXPECT_EQ(find_loss_as_text(
                R"(2,"chunks":1,"microbatches":1},"placement":[0,1],"order":["1F0 1B0","0F0 0B0")"),
            "the ranks that its stages should be on, so they are on those that run them");
  EXPECT_EQ(find_loss_as_text(R"(1,"chunks":1,"microbatches":1},"placement":[0],"order":["0F0")"),
            "that its backwards are missing, so it has only forwards");
}

}  // namespace
}  // namespace bubblescope::tests
