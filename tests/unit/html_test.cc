// The --html page: its content, read back number by number, and what it must not contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/model/schedule_def.h"
#include "tests/support/recorded_step.h"
#include "traces/drawings/html_page.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

/// A step with several messages on one link at a time.
UniformCost slow_messages() { return uneven_cost(2'500'011); }

std::string_view between(std::string_view text, std::string_view from, std::string_view to) {
  text.remove_prefix(text.find(from) + from.size());
  return text.substr(0, text.find(to));
}

Json data_of(const std::string& page) {
  return Json::parse(between(page, "id=\"data\">", "</script>"));
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Decodes numbers from base64 like the page's own script.
class Numbers {
 public:
  explicit Numbers(const std::string& text) {
    const std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    EXPECT_EQ(text.size() % 4, 0u);
    unsigned bits = 0;
    int held = 0;
    for (const char letter : text.substr(0, text.find('='))) {
      bits = bits << 6 | static_cast<unsigned>(letters.find(letter));
      held += 6;
      if (held < 8) continue;
      held -= 8;
      bytes_.push_back(static_cast<std::uint8_t>(bits >> held));
    }
  }

  std::int64_t next() {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t byte = bytes_.at(at_++);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return static_cast<std::int64_t>(number);
    }
  }

  std::int64_t next_signed() {
    const auto folded = static_cast<std::uint64_t>(next());
    return static_cast<std::int64_t>(folded >> 1) * (folded & 1 ? -1 : 1) - (folded & 1 ? 1 : 0);
  }

  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// Walks through the ops of a page's step and compares each with the step.
class OpComparison {
 public:
  OpComparison(const RecordedStep& step, const Json& json)
      : step_(step),
        numbers_(json["ops"].get<std::string>()),
        thread_(step.program.size(), 0),
        start_(step.timeline.start),
        last_end_(json["threads"].size() + 1, json["origin"].get<Nanos>()),
        last_stage_(json["threads"].size() + 1, 0),
        expected_((json["threads"].size() + 1) * kOpKinds) {
    for (const traces::TraceSlice& slice :
         traces::assign_threads(step.program, step.timeline).slices) {
      thread_[slice.id] = slice.thread + 1;
      start_[slice.id] = slice.start;
    }
  }

  void run() {
    for (InstructionId id = 0; id < step_.program.size(); ++id) expect_instruction(id);
    EXPECT_TRUE(numbers_.at_end());
  }

 private:
  struct Expected {
    std::int64_t microbatch = 0;
    Nanos duration = 0;
    Nanos slack = 0;
  };

  void expect_instruction(InstructionId id) {
    const Instruction& instruction = step_.program.instructions[id];
    const std::int64_t head = numbers_.next();
    ASSERT_EQ(head & 31, static_cast<int>(instruction.op.kind));
    ASSERT_EQ(head >> 5 & 3, static_cast<int>(instruction.role));
    const auto& path = step_.report.critical_path;
    ASSERT_EQ(head >> 7 == 1, std::find(path.begin(), path.end(), id) != path.end());
    thread_now_ += numbers_.next_signed();
    ASSERT_EQ(thread_now_, thread_[id]);
    const auto thread = static_cast<std::size_t>(thread_now_);
    Expected& likely = expected_[thread * kOpKinds + static_cast<std::size_t>(instruction.op.kind)];
    ASSERT_EQ(last_stage_[thread] += numbers_.next_signed(), instruction.op.stage);
    ASSERT_EQ(likely.microbatch += numbers_.next_signed(), instruction.op.microbatch);
    if (step_.schedule->shape.slices > 1) {
      ASSERT_EQ(numbers_.next(), instruction.op.slice);
    }
    const Nanos start = last_end_[thread] + numbers_.next_signed();
    ASSERT_EQ(start, start_[id]);
    last_end_[thread] = start + (likely.duration += numbers_.next_signed());
    ASSERT_EQ(last_end_[thread], step_.timeline.end[id]);
    ASSERT_EQ(likely.slack += numbers_.next_signed(), step_.report.slack[id]);
    ASSERT_EQ(numbers_.next(), std::ssize(step_.program.dependencies_of(id)));
    for (const InstructionId dependency : step_.program.dependencies_of(id))
      ASSERT_EQ(id - numbers_.next(), dependency);
  }

  const RecordedStep& step_;
  Numbers numbers_;
  std::vector<std::uint32_t> thread_;
  std::vector<Nanos> start_;
  std::vector<Nanos> last_end_;
  std::vector<std::int64_t> last_stage_;
  std::vector<Expected> expected_;
  std::int64_t thread_now_ = 0;
};

TEST(Html, HoldsEveryInstructionOfEverySchedule) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const Json data = data_of(write_as("html", step));
    ASSERT_EQ(data["steps"].size(), 1u);
    EXPECT_EQ(data["steps"][0]["count"], step.program.size());
    OpComparison(step, data["steps"][0]).run();
  }
}

TEST(Html, HoldsEveryIdleGap) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const Json json = data_of(write_as("html", step))["steps"][0];
    Numbers numbers(json["idle"].get<std::string>());
    const std::vector<IdleGap> gaps = find_idle_gaps(step.program, step.timeline);
    auto gap = gaps.begin();
    for (std::int32_t rank = 0; rank < step.program.ranks; ++rank) {
      Nanos from = json["origin"].get<Nanos>();
      for (std::int64_t left = numbers.next(); left > 0; --left, ++gap) {
        ASSERT_EQ(gap->rank, rank);
        EXPECT_EQ(numbers.next(), static_cast<int>(gap->cause));
        EXPECT_EQ(from + numbers.next_signed(), gap->start);
        EXPECT_EQ(gap->start + numbers.next_signed(), gap->end);
        from = gap->end;
      }
    }
    EXPECT_TRUE(numbers.at_end() && gap == gaps.end());
  }
}

TEST(Html, HoldsTheMemoryCurves) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const Json json = data_of(write_as("html", step))["steps"][0];
    Numbers numbers(json["memory"].get<std::string>());
    for (const RankReport& rank : step.report.ranks) {
      std::int64_t held = 0;
      std::int64_t highest = 0;
      for (std::int64_t left = numbers.next(); left > 0; --left) {
        EXPECT_GE(numbers.next_signed(), 0);
        held += numbers.next_signed();
        highest = std::max(highest, held);
      }
      EXPECT_DOUBLE_EQ(static_cast<double>(highest) * json["memoryUnit"].get<double>(),
                       rank.peak.chunks);
    }
    EXPECT_TRUE(numbers.at_end());
  }
}

TEST(Html, HasTablesThatAddUp) {
  for (const RecordedStep& step : many_steps(slow_messages())) {
    const Json data = data_of(write_as("html", step));
    for (const Json& rank : data["steps"][0]["ranks"]) {
      Nanos sum = 0;
      for (const Json& part : rank["busyBy"]) sum += part.get<Nanos>();
      for (const Json& part : rank["idleBy"]) sum += part.get<Nanos>();
      EXPECT_EQ(sum, step.report.makespan);
    }
  }
}

// Names of schedules and sources come from other people's files.
TEST(Html, LetsNoNameBecomeMarkup) {
  RecordedStep step = record_text("0F0 0B0 | 1F0 1B0");
  const std::string bad = "</script><img src=x onerror=alert(1)><!--\xff\u2028\"'&";
  step.schedule.rename(bad);
  step.timeline.source = bad;
  step.timeline.breakdown = bad;
  step.made.costs = bad;
  step.program.lanes[0].name = bad;
  const std::string page = write_report_set("html", {"bubblescope " + bad, {{bad, step.record()}}});
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_EQ(count(page, "</script"), 2u);
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  const Json data = data_of(page);
  const std::string kept = data["steps"][0]["schedule"];
  EXPECT_TRUE(kept.starts_with("</script><img src=x onerror=alert(1)><!--"));
}

// Names of collectives come from traces.
TEST(Html, HoldsTheCausesAsText) {
  const RecordedStep step = record_text("0F0 0B0 | 1F0 1B0");
  const std::string bad = "</script><img src=x onerror=alert(1)>";
  const traces::CausesInWords causes{
      {{"exposed communication: " + bad, "the step would be 6 ms shorter (1.5 %) if ops hid it",
        "(or not)", 6'000'000, 0.015}},
      "these overlap"};
  const std::string page =
      write_report_set("html", {"bubblescope", {{"1f1b", step.record()}}, {}, causes});
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "</script"), 2u);
  const Json found = data_of(page)["longSteps"];
  ASSERT_EQ(found["causes"].size(), 1u);
  const Json& cause = found["causes"][0];
  EXPECT_EQ(cause["what"], "exposed communication: " + bad);
  EXPECT_EQ(cause["wouldSave"], "the step would be 6 ms shorter (1.5 %) if ops hid it");
  EXPECT_EQ(cause["caveat"], "(or not)");
  EXPECT_EQ(cause["saves"], 6'000'000);
  EXPECT_EQ(cause["share"], 0.015);
  EXPECT_EQ(found["remark"], "these overlap");
}

TEST(Html, HasNoCausesWhereNoneWereSought) {
  EXPECT_FALSE(data_of(write_as("html", record_text("0F0 0B0 | 1F0 1B0"))).contains("longSteps"));
}

TEST(Html, HoldsWhatChangedAsText) {
  const RecordedStep step = record_text("0F0 0B0 | 1F0 1B0");
  const std::string bad = "</script><img src=x onerror=alert(1)>";
  const std::string page =
      write_report_set("html", {.command = "bubblescope",
                                .steps = {{"A", step.record()}, {"B", step.record(), {}, 0}},
                                .changes = {{bad, {{bad, "-", "1 ms", "+1 ms"}}, bad}}});
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "</script"), 2u);
  const Json found = data_of(page)["changes"][0];
  EXPECT_EQ(found["title"], bad);
  EXPECT_EQ(found["rows"], Json::array({Json::array({bad, "-", "1 ms", "+1 ms"})}));
  EXPECT_EQ(found["remark"], bad);
}

TEST(Html, LoadsNothingFromAnywhere) {
  const std::string page = write_as("html", record_text("0F0 0B0 | 1F0 1B0"));
  for (const char* word :
       {"http://", "https://", " src=", "@import", "url(", "<link", "fetch(", "innerHTML", "eval("})
    EXPECT_EQ(count(page, word), 0u) << word;
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
}

TEST(Html, HasEveryPartInItsPlace) {
  const RecordedStep one = record_step("gpipe", {.ranks = 2, .microbatches = 4});
  const RecordedStep two = record_step("1f1b", {.ranks = 2, .microbatches = 4});
  const std::string page = write_report_set(
      "html", {"bubblescope compare", {{"gpipe", one.record()}, {"1f1b", two.record(), {}, 0}}});
  EXPECT_EQ(between(page, "<title>", "</title>"), "gpipe, 1f1b - bubblescope");
  for (const char* mark : {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"})
    EXPECT_EQ(count(page, mark), 0u) << mark;
  EXPECT_NE(page.find(traces::html_style()), page.npos);
  EXPECT_FALSE(traces::html_scripts().empty());
  std::size_t at = 0;
  for (const std::string_view script : traces::html_scripts()) {
    at = page.find(script, at);
    ASSERT_NE(at, page.npos);
    at += script.size();
  }
  const Json data = data_of(page);
  EXPECT_EQ(data["command"], "bubblescope compare");
  EXPECT_TRUE(data["steps"][0]["against"].is_null());
  EXPECT_EQ(data["steps"][1]["against"], 0);
}

// With ten thousand instructions, most numbers are predicted from earlier ones.
TEST(Html, IsSmall) {
  const RecordedStep step = record_step("1f1b", {.ranks = 8, .microbatches = 400});
  const std::string ops = data_of(write_as("html", step))["steps"][0]["ops"];
  EXPECT_GT(step.program.size(), 10'000u);
  EXPECT_LT(ops.size(), 20 * step.program.size());
}

}  // namespace
}  // namespace bubblescope::tests
