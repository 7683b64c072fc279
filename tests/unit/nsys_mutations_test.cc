// Damages exports of Nsight Systems in every way that an event can be lost, renamed or moved: the
// report must be right, or the file refused, or the first line says that something is wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/nsys_writer.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"
#include "traces/json/json_node.h"

namespace bubblescope::tests {
namespace {

enum class Outcome : std::uint8_t { kRight, kSaid, kRefused, kSilent };

/// A change of one event, chosen by `random`.
struct Mutation {
  std::string name;
  std::function<void(NsysEvents&, std::mt19937&)> apply;
};

template <class List>
auto& any_of(List& list, std::mt19937& random) {
  return list[random() % list.size()];
}

template <class List>
void remove_any(List& list, std::mt19937& random) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
}

bool is_of_interest(const std::string& name) { return !name.starts_with("aten"); }

NsysEvents::Range& any_range(NsysEvents& events, std::mt19937& random) {
  for (;;) {
    NsysEvents::Range& range = any_of(events.ranges, random);
    if (is_of_interest(range.name)) return range;
  }
}

void shift(NsysEvents::Range& range, Nanos by) {
  range.start += by;
  range.end += by;
}

std::vector<Mutation> losses_and_names() {
  std::vector<Mutation> all;
  all.push_back({"remove a range", [](NsysEvents& events, std::mt19937& random) {
                   any_range(events, random).name = "aten::nothing";
                 }});
  all.push_back({"remove a launch", [](NsysEvents& events, std::mt19937& random) {
                   remove_any(events.calls, random);
                 }});
  all.push_back({"remove a kernel", [](NsysEvents& events, std::mt19937& random) {
                   remove_any(events.kernels, random);
                 }});
  all.push_back({"rename a range to another", [](NsysEvents& events, std::mt19937& random) {
                   any_range(events, random).name = any_range(events, random).name;
                 }});
  all.push_back({"swap two names", [](NsysEvents& events, std::mt19937& random) {
                   std::swap(any_range(events, random).name, any_range(events, random).name);
                 }});
  all.push_back({"rename all of a kind", [](NsysEvents& events, std::mt19937& random) {
                   const std::string name = any_range(events, random).name;
                   for (NsysEvents::Range& range : events.ranges)
                     if (range.name == name) range.name = "something else";
                 }});
  return all;
}

std::vector<Mutation> shifts() {
  std::vector<Mutation> all;
  for (const Nanos by : {Nanos{9'000}, Nanos{-9'000}, Nanos{700'000}, Nanos{-3'000'000}})
    all.push_back(
        {fmt::format("shift a range by {} us", by / 1000),
         [by](NsysEvents& events, std::mt19937& random) { shift(any_range(events, random), by); }});
  for (const Nanos by : {Nanos{200'000}, Nanos{-2'000'000}, Nanos{40'000'000}})
    all.push_back({fmt::format("shift a process by {} us", by / 1000),
                   [by](NsysEvents& events, std::mt19937& random) {
                     const auto process =
                         nsys_process(static_cast<std::int32_t>(random() % 4)) >> 24;
                     for (NsysEvents::Range& range : events.ranges)
                       if (range.thread >> 24 == process) shift(range, by);
                     for (NsysEvents::Call& call : events.calls)
                       if (call.thread >> 24 == process) call.start += by;
                     for (NsysEvents::Kernel& kernel : events.kernels)
                       if (kernel.process >> 24 == process) {
                         kernel.start += by;
                         kernel.end += by;
                       }
                   }});
  return all;
}

std::vector<Mutation> cuts() {
  std::vector<Mutation> all;
  all.push_back({"lose a process", [](NsysEvents& events, std::mt19937& random) {
                   const auto process = nsys_process(static_cast<std::int32_t>(random() % 4)) >> 24;
                   std::erase_if(events.ranges, [&](const NsysEvents::Range& range) {
                     return range.thread >> 24 == process;
                   });
                 }});
  all.push_back({"begin late on a rank", [](NsysEvents& events, std::mt19937& random) {
                   const auto process = nsys_process(static_cast<std::int32_t>(random() % 4)) >> 24;
                   const Nanos from = any_range(events, random).start;
                   std::erase_if(events.ranges, [&](const NsysEvents::Range& range) {
                     return range.thread >> 24 == process && range.start < from;
                   });
                 }});
  all.push_back({"end early on all ranks", [](NsysEvents& events, std::mt19937& random) {
                   const Nanos end = any_range(events, random).start;
                   std::erase_if(events.ranges,
                                 [&](const NsysEvents::Range& range) { return range.start > end; });
                 }});
  return all;
}

/// Calls change(kernel) for the kernels that one rank launched within ranges of one name.
template <class Change>
void change_kernels(NsysEvents& events, std::mt19937& random, std::uint32_t percent,
                    Change change) {
  const NsysEvents::Range chosen = any_range(events, random);
  std::set<std::int64_t> correlations;
  for (const NsysEvents::Call& call : events.calls)
    for (const NsysEvents::Range& range : events.ranges)
      if (range.name == chosen.name && range.thread == chosen.thread &&
          call.thread >> 24 == range.thread >> 24 && call.start >= range.start &&
          call.start <= range.end)
        correlations.insert(call.correlation);
  for (NsysEvents::Kernel& kernel : events.kernels)
    if (kernel.process >> 24 == chosen.thread >> 24 && correlations.contains(kernel.correlation) &&
        random() % 100 < percent)
      change(kernel);
}

std::vector<Mutation> changes_of_kernels() {
  std::vector<Mutation> all;
  for (const std::uint32_t percent : {10U, 60U, 100U}) {
    const auto add = [&](const std::string& name, auto change) {
      all.push_back({fmt::format("{} {} % of a range's kernels", name, percent),
                     [=](NsysEvents& events, std::mt19937& random) {
                       change_kernels(events, random, percent, change);
                     }});
    };
    add("lose", [](NsysEvents::Kernel& kernel) { kernel.correlation = -1; });
    add("delay", [](NsysEvents::Kernel& kernel) {
      kernel.start += 400'000;
      kernel.end += 400'000;
    });
    add("advance", [](NsysEvents::Kernel& kernel) {
      kernel.start -= 400'000;
      kernel.end -= 400'000;
    });
    add("halve", [](NsysEvents::Kernel& kernel) {
      kernel.end = kernel.start + (kernel.end - kernel.start) / 2;
    });
    add("double", [](NsysEvents::Kernel& kernel) { kernel.end += kernel.end - kernel.start; });
  }
  return all;
}

std::vector<Mutation> changes_of_ranges() {
  std::vector<Mutation> all;
  all.push_back({"duplicate a range", [](NsysEvents& events, std::mt19937& random) {
                   events.ranges.push_back(any_range(events, random));
                 }});
  all.push_back({"duplicate a range later", [](NsysEvents& events, std::mt19937& random) {
                   NsysEvents::Range twin = any_range(events, random);
                   shift(twin, 300'000);
                   events.ranges.push_back(twin);
                 }});
  all.push_back({"duplicate a kernel", [](NsysEvents& events, std::mt19937& random) {
                   NsysEvents::Kernel twin = any_of(events.kernels, random);
                   twin.end += 500'000;
                   events.kernels.push_back(twin);
                 }});
  for (const Nanos length : {Nanos{0}, Nanos{5'000}, Nanos{900'000}})
    all.push_back({fmt::format("make ranges of one name {} us long", length / 1000),
                   [length](NsysEvents& events, std::mt19937& random) {
                     const NsysEvents::Range chosen = any_range(events, random);
                     for (NsysEvents::Range& range : events.ranges)
                       if (range.name == chosen.name && range.thread == chosen.thread)
                         range.end = range.start + length;
                   }});
  all.push_back({"swap the times of two ranges", [](NsysEvents& events, std::mt19937& random) {
                   NsysEvents::Range& left = any_range(events, random);
                   NsysEvents::Range& right = any_range(events, random);
                   std::swap(left.start, right.start);
                   std::swap(left.end, right.end);
                 }});
  all.push_back({"lose half of a rank's ranges", [](NsysEvents& events, std::mt19937& random) {
                   const std::int64_t thread = any_range(events, random).thread;
                   std::erase_if(events.ranges, [&](const NsysEvents::Range& range) {
                     return range.thread == thread && random() % 2 == 0;
                   });
                 }});
  all.push_back({"reverse the rows", [](NsysEvents& events, std::mt19937&) {
                   std::reverse(events.ranges.begin(), events.ranges.end());
                   std::reverse(events.calls.begin(), events.calls.end());
                   std::reverse(events.kernels.begin(), events.kernels.end());
                 }});
  return all;
}

std::vector<Mutation> mutations() {
  std::vector<Mutation> all = losses_and_names();
  for (const std::vector<Mutation>& more :
       {shifts(), cuts(), changes_of_kernels(), changes_of_ranges()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

class NsysMutations : public TemporaryFolder {
 protected:
  Outcome judge(const NsysEvents& events, const RecordedStep& truth) {
    write(events, "job.sqlite");
    return judge_report(path("job.sqlite"), truth);
  }

  /// The same for ranks that were recorded into a file each.
  Outcome judge_by_rank(const NsysEvents& events, const RecordedStep& truth) {
    std::filesystem::remove_all(path("job"));
    std::filesystem::create_directory(path("job"));
    for (std::int32_t rank = 0; rank < 4; ++rank)
      if (const NsysEvents own = of_rank(events, rank); !own.ranges.empty())
        write(own, fmt::format("job/rank{}.sqlite", rank));
    return judge_report(path("job"), truth);
  }

  std::string last_;

 private:
  void write(const NsysEvents& events, const std::string& name) const {
    if (!write_nsys(path(name), events, NsysSchema::k2023)) throw Error("there is no libsqlite3");
  }

  Outcome judge_report(const std::string& traces, const RecordedStep& truth) {
    // Within this process: starting another one takes longer than the analysis.
    CommandOutcome outcome;
    try {
      outcome = call_command(tools::run_analyze, {traces, "--format", "json"});
    } catch (const Error& error) {
      if (error.fault() == Fault::kUsage) return Outcome::kRefused;
      throw;
    }
    if (outcome.status != 0) throw Error("analyze failed otherwise");
    const traces::JsonFile json(outcome.output, "report");
    const traces::JsonNode root = json.root();
    const traces::JsonNode trust = root.at("trust");
    if (trust.at("verdict").text() != "good") return Outcome::kSaid;
    const double makespan = *root.at("makespan_ns").number();
    const traces::JsonNode bubble = root.at("bubble");
    const double expected = static_cast<double>(truth.report.makespan);
    const bool is_right =
        root.at("pp").integer(1, 100) == 4 && std::abs(makespan - expected) < 0.005 * expected &&
        std::abs(*bubble.at("ratio").number() - truth.report.bubble->ratio) < 0.005;
    if (!is_right) last_ = fmt::format("makespan {} for {}", makespan, expected);
    return is_right ? Outcome::kRight : Outcome::kSilent;
  }
};

NsysEvents without_rank(NsysEvents events, std::int32_t rank) {
  const std::int64_t process = nsys_process(rank) >> 24;
  std::erase_if(events.ranges, [=](const auto& range) { return range.thread >> 24 == process; });
  std::erase_if(events.calls, [=](const auto& call) { return call.thread >> 24 == process; });
  std::erase_if(events.kernels,
                [=](const auto& kernel) { return kernel.process >> 24 == process; });
  return events;
}

/// The file of a rank is lost. Without any message, a pipeline that begins on rank 1 looks like a
/// whole one: only there the loss of rank 0 does not show.
TEST_F(NsysMutations, ALostRankIsSaid) {
  if (!write_database(path("probe.sqlite"), "CREATE TABLE a(b);"))
    GTEST_SKIP() << "there is no libsqlite3";
  struct Recorded {
    const char* schedule;
    NsysNames names;
    bool has_messages;
    Outcome by_rank = Outcome::kRight;  ///< of a file per rank, none of which is lost
  };
  // All ranks of GPipe do the same, so that nothing shows their order. Stages of one rank can be
  // told apart only beside the other ranks.
  std::map<Outcome, int> count;
  for (const Recorded& one :
       {Recorded{"1f1b", NsysNames::kMegatron, true},
        Recorded{"1f1b", NsysNames::kFunctions, false},
        Recorded{"1f1b", NsysNames::kDeepSpeed, false}, Recorded{"1f1b", NsysNames::kPasses, true},
        Recorded{"1f1b", NsysNames::kZeroBubble, false},
        Recorded{"zb-h1", NsysNames::kZeroBubble, false},
        Recorded{"zb-h2", NsysNames::kZeroBubble, false},
        Recorded{"gpipe", NsysNames::kFunctions, false, Outcome::kSaid},
        Recorded{"gpipe", NsysNames::kPasses, true, Outcome::kSaid},
        Recorded{"interleaved", NsysNames::kInterleaved, true, Outcome::kRefused}})
    for (const std::int32_t microbatches : {8, 40})
      for (std::int32_t lost = -1; lost < 4; ++lost) {
        const bool chunked = one.names == NsysNames::kInterleaved;
        const RecordedStep step = record_step(
            one.schedule, {.ranks = 4, .chunks = chunked ? 2 : 1, .microbatches = microbatches},
            uneven_cost(10'000));
        NsysEvents events = record_nsys(step, {one.names});
        if (lost >= 0) events = without_rank(events, lost);
        for (const bool by_rank : {false, true}) {
          const Outcome outcome = by_rank ? judge_by_rank(events, step) : judge(events, step);
          ++count[outcome];
          const std::string what = fmt::format(
              "{} m {}, names {}, lost rank {}, {}: {}", one.schedule, microbatches,
              static_cast<int>(one.names), lost, by_rank ? "files by rank" : "one file", last_);
          if (lost < 0) {
            EXPECT_EQ(outcome, by_rank ? one.by_rank : Outcome::kRight) << what;
          }
          if (lost == 0 && !one.has_messages) continue;
          EXPECT_NE(outcome, Outcome::kSilent) << what;
        }
      }
  EXPECT_GT(count[Outcome::kSaid], 10);
}

// The last stage of a V is on rank 0: the last rank waits for a gradient before its first backward.
TEST_F(NsysMutations, NoRankSeemsToBeMissingFromAV) {
  if (!write_database(path("probe.sqlite"), "CREATE TABLE a(b);"))
    GTEST_SKIP() << "there is no libsqlite3";
  for (const char* schedule : {"v-half", "zb-v"}) {
    const RecordedStep step =
        record_step(schedule, {.ranks = 4, .chunks = 2, .microbatches = 8}, uneven_cost(10'000));
    EXPECT_EQ(judge(record_nsys(step, {NsysNames::kZeroBubble}), step), Outcome::kRight)
        << schedule;
  }
}

TEST_F(NsysMutations, OpsThatLostTheirNumberAreSaid) {
  if (!write_database(path("probe.sqlite"), "CREATE TABLE a(b);"))
    GTEST_SKIP() << "there is no libsqlite3";
  const RecordedStep step =
      record_step("1f1b", {.ranks = 4, .microbatches = 8}, uneven_cost(10'000));
  const NsysEvents sound = record_nsys(step, {NsysNames::kOps});
  NsysEvents around = sound;
  NsysEvents evaluated = sound;
  for (const NsysEvents::Range& range : sound.ranges)
    if (range.name.starts_with("PP:1F"))
      around.ranges.push_back({range.thread, range.start - 100, range.end + 100, "forward_step"});
  EXPECT_EQ(judge(around, step), Outcome::kRight) << last_;
  evaluated.ranges.push_back({sound.ranges.front().thread, 1'000, 2'000, "forward_step"});
  EXPECT_EQ(judge(evaluated, step), Outcome::kSaid);
}

TEST_F(NsysMutations, NoneIsMisreadSilently) {
  const RecordedStep plain =
      record_step("1f1b", {.ranks = 4, .microbatches = 8}, uneven_cost(10'000));
  const RecordedStep chunked =
      record_step("interleaved", {.ranks = 4, .chunks = 2, .microbatches = 8}, uneven_cost(10'000));
  std::map<Outcome, int> count;
  for (const NsysNames names :
       {NsysNames::kOps, NsysNames::kZeroBubble, NsysNames::kMegatron, NsysNames::kFunctions,
        NsysNames::kInterleaved, NsysNames::kOverlapped, NsysNames::kDeepSpeed,
        NsysNames::kPasses}) {
    const bool has_chunks = names == NsysNames::kInterleaved || names == NsysNames::kOverlapped;
    const RecordedStep& step = has_chunks ? chunked : plain;
    const NsysEvents sound = record_nsys(step, {names});
    if (!write_database(path("probe.sqlite"), "CREATE TABLE a(b);"))
      GTEST_SKIP() << "there is no libsqlite3";
    EXPECT_EQ(judge(sound, step), Outcome::kRight) << last_;
    for (const Mutation& mutation : mutations())
      for (std::uint32_t seed = 0; seed < (kSanitized ? 1 : 4); ++seed) {
        std::mt19937 random(seed);
        NsysEvents mutant = sound;
        mutation.apply(mutant, random);
        const Outcome outcome = judge(mutant, step);
        ++count[outcome];
        EXPECT_NE(outcome, Outcome::kSilent) << mutation.name << ", seed " << seed << ", names "
                                             << static_cast<int>(names) << ": " << last_;
      }
  }
  // The test must not pass because everything is refused.
  const int min_count = kSanitized ? 5 : 20;
  EXPECT_GT(count[Outcome::kRight], min_count);
  EXPECT_GT(count[Outcome::kSaid], min_count);
  EXPECT_GT(count[Outcome::kRefused], min_count);
  RecordProperty("right", count[Outcome::kRight]);
  RecordProperty("said", count[Outcome::kSaid]);
  RecordProperty("refused", count[Outcome::kRefused]);
}

}  // namespace
}  // namespace bubblescope::tests
