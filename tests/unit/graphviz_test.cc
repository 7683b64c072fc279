// The dependency graph, as text and rendered.
#include "traces/drawings/graphviz.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/find_text.h"
#include "tests/support/recorded_step.h"
#include "tests/support/test_paths.h"
#include "traces/drawings/dot_graph.h"

namespace bubblescope::tests {
namespace {

std::string module_file() {
  return std::filesystem::path(program_path()).parent_path() / "bubblescope_graphviz.so";
}

TEST(Dot, HasABoxPerOpAndAnEdgePerMessage) {
  // GPipe, p = m = 2: 8 ops; 2 activations and 2 gradients cross ranks.
  const RecordedStep step = record_step("gpipe", {.ranks = 2, .microbatches = 2});
  const std::string dot = traces::write_dot(step.record());
  EXPECT_EQ(traces::count_dot_nodes(step.program), 8u);
  EXPECT_EQ(count(dot, " pos=\"") - count(dot, " -> "), 8u);
  EXPECT_EQ(count(dot, "style=dashed"), 4u);
  EXPECT_EQ(count(dot, "subgraph cluster_rank"), 2u);
}

TEST(Dot, LabelsMessagesWithTheirLatency) {
  UniformCost cost;
  cost.message = 400'000;
  const RecordedStep step = record_step("gpipe", {.ranks = 2, .microbatches = 2}, cost);
  EXPECT_EQ(count(traces::write_dot(step.record()), "label=\"400 us\""), 4u);
}

TEST(Dot, MarksTheCriticalPath) {
  // 0F0 1F0 1F1 1B0 1B1 0B1: 5 edges lead along it.
  const RecordedStep step = record_step("gpipe", {.ranks = 2, .microbatches = 2});
  const std::string dot = traces::write_dot(step.record());
  std::size_t ops = 0;
  for (const InstructionId id : step.report.critical_path)
    ops += !is_message(step.program.instructions[id]);
  EXPECT_EQ(count(dot, "color=red penwidth=2"), ops + (ops - 1));
}

TEST(Dot, LeavesPostsAndWaitsOut) {
  const RecordedStep plain = record_step("1f1b", {.ranks = 4, .microbatches = 4});
  const RecordedStep posted =
      record_step("1f1b", {.ranks = 4, .microbatches = 4}, {},
                  {.overlap = Overlap::kAtomic, .mode = P2pMode::kHostRendezvous});
  EXPECT_GT(posted.program.size(), plain.program.size());
  EXPECT_EQ(traces::count_dot_nodes(posted.program), traces::count_dot_nodes(plain.program));
}

TEST(Dot, EscapesTheNameOfTheSchedule) {
  RecordedStep step = record_step("gpipe", {.ranks = 2, .microbatches = 2});
  step.schedule.rename("a \"b\" \\");
  EXPECT_TRUE(traces::write_dot(step.record()).starts_with(R"(digraph "a \"b\" \\" {)"));
}

TEST(Graphviz, RendersByTheNameOfTheFile) {
  if (!std::filesystem::exists(module_file())) GTEST_SKIP() << "built without Graphviz";
  const RecordedStep step = record_step("gpipe", {.ranks = 2, .microbatches = 2});
  const std::string dot = traces::write_dot(step.record());
  EXPECT_TRUE(traces::render_graph(dot, "png", module_file()).starts_with("\x89PNG"));
  EXPECT_TRUE(traces::render_graph(dot, "pdf", module_file()).starts_with("%PDF"));
  const std::string svg = traces::render_graph(dot, "svg", module_file());
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find(">0F0</text>"), std::string::npos);
  EXPECT_EQ(write_as("dot", step, "graph.dot"), dot);
}

TEST(Graphviz, SaysWhatToInstallWhereTheModuleIsMissing) {
  try {
    traces::render_graph("digraph {}", "svg", "/nowhere/bubblescope_graphviz.so");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_NE(std::string(error.what()).find("libgraphviz-dev"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(".dot"), std::string::npos);
  }
}

TEST(Graphviz, RefusesGraphsTooLargeToRender) {
  // 2 p m = 2 * 16 * 1024 = 32768 ops.
  const RecordedStep step = record_step("1f1b", {.ranks = 16, .microbatches = 1024});
  EXPECT_EQ(error_of([&] { write_as("dot", step, "graph.svg"); }),
            "graph.svg: a graph of 32768 ops is too large to render (at most 20000); take fewer "
            "micro-batches, or write it as .dot");
  EXPECT_NO_THROW(write_as("dot", step, "graph.dot"));
}

}  // namespace
}  // namespace bubblescope::tests

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__  // as gcc says it
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
/// Graphviz and the libraries that it draws text with keep memory until the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgvc\nleak:libcgraph\nleak:libgvplugin\nleak:libfontconfig\nleak:libpango\n"
         "leak:libcairo\nleak:libglib\nleak:libgobject\n";
}
#endif
