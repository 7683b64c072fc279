// OpenTelemetry spans of Megatron-LM.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

std::string span(const std::string& name, int start_us, int end_us, int microbatch) {
  return fmt::format(
      R"({{"name":"{}","startTimeUnixNano":"1750000000{:09d}","endTimeUnixNano":"1750000000{:09d}","attributes":[{{"key":"megatron.microbatch_id","value":{{"intValue":"{}"}}}}]}})",
      name, 1000 * start_us, 1000 * end_us, microbatch);
}

std::string rank(int rank, const std::string& spans) {
  return fmt::format(
      R"({{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"dl.rank","value":{{"intValue":"{}"}}}},{{"key":"host.name","value":{{"stringValue":"a"}}}}]}},"scopeSpans":[{{"spans":[{}]}}]}}]}})",
      rank, spans);
}

const std::string kForward = "megatron.microbatch.forward";
const std::string kBackward = "megatron.microbatch.backward";

TEST(OtelSpans, ShowTheOrderButSupportNoConclusion) {
  // Rank 1, whose first backward follows one forward, is given first.
  const std::string text =
      rank(1, span(kForward, 20, 30, 0) + "," + span(kBackward, 40, 50, 0) + "," +
                  span(kForward, 60, 70, 1) + "," + span(kBackward, 80, 90, 1)) +
      "\n" +
      rank(0, span(kForward, 10, 15, 0) + "," + span(kForward, 20, 25, 1) + "," +
                  span(kBackward, 60, 65, 0) + "," + span(kBackward, 95, 99, 1)) +
      "\n";
  const traces::AssembledSteps read =
      traces::assemble_steps(traces::parse_trace({"spans.jsonl", text}));
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].schedule->order[0],
            (RankOrder{forward(0, 0), forward(0, 1), backward(0, 0), backward(0, 1)}));
  EXPECT_EQ(read.steps[0].schedule->order[1],
            (RankOrder{forward(1, 0), backward(1, 0), forward(1, 1), backward(1, 1)}));
  ASSERT_FALSE(read.remarks.faults.empty());
  EXPECT_NE(read.remarks.faults[0].find("not when the device ran them"), std::string::npos);
}

TEST(OtelSpans, WithoutMicrobatchesAreRefusedWithTheirNames) {
  const auto parse = [] {
    traces::parse_trace({"spans.json", rank(0, span("megatron.optimizer_step", 1, 2, 0))});
  };
  EXPECT_TRUE(fails_with(parse, "megatron.optimizer_step"));
  EXPECT_TRUE(fails_with(parse, "MEGATRON_OTEL_SPAN_GROUPS=all"));
}

TEST(OtelSpans, OfOtherProgramsAreReadByRules) {
  const traces::NameRules rules = traces::NameRules::parse(
      R"({"format":"bubblescope-rules/1","rules":[{"match":"fwd","kind":"F"},)"
      R"({"match":"bwd","kind":"B"},{"match":"megatron.*","kind":"ignore"}]})",
      "rules.json");
  const std::string text = rank(0, span("fwd", 10, 15, 0) + "," + span(kForward, 16, 17, 0) + "," +
                                       span("bwd", 20, 25, 0) + "," + span("data", 30, 31, 0));
  const traces::ObservedTrace trace = traces::parse_trace({"spans.json", text, &rules});
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].op.kind, OpKind::kForward);
  EXPECT_EQ(trace.ops[1].op.kind, OpKind::kBackward);
}

TEST(OtelSpans, DamagedOnesAreRefused) {
  const std::string sound = rank(0, span(kForward, 1, 2, 0));
  EXPECT_TRUE(fails_with(
      [&] {
        traces::parse_trace({"spans", sound.substr(0, sound.size() - 9)});
      },
      "spans:1:353: not valid JSON: syntax error while parsing object - unexpected end of "
      "input"));
  EXPECT_EQ(error_of([&] {
              traces::parse_trace({"spans", rank(0, span(kForward, 2, 1, 0))});
            }),
            "spans: /resourceSpans/0/scopeSpans/0/spans/0: ends before it starts");
}

}  // namespace
}  // namespace bubblescope::tests
