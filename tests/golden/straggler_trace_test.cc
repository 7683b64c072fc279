// Tests a production trace (StragglerAnalysis) and PyTorch profiles without pipelines.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/analysis/causes.h"
#include "sim/analysis/critical_path.h"
#include "sim/analysis/mean_report.h"
#include "sim/analysis/replay.h"
#include "sim/analysis/stragglers.h"
#include "sim/ir/error.h"
#include "tests/golden/reference_data.h"
#include "tests/support/as_written.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr const char* kTrace = "traces/straggler/timeline-ST.json.gz";

std::vector<traces::MeasuredStep> read_steps(const std::string& path) {
  return traces::assemble_steps(traces::read_trace(path)).steps;
}

TEST(StragglerTrace, HasThePublishedIterationsAndBubble) {
  if (const std::string missing = missing_reference(kTrace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::vector<traces::MeasuredStep> steps = read_steps(reference_folder() + "/" + kTrace);
  ASSERT_EQ(steps.size(), 64u);  // 2 replicas x 32 steps
  std::vector<BubbleReport> reports;
  std::vector<double> errors;
  for (const traces::MeasuredStep& step : steps) {
    reports.push_back(analyze(step.schedule, step.program, step.timeline));
    errors.push_back(replay_error(step.program, step.timeline));
  }
  const BubbleReport mean = average_reports(reports);
  EXPECT_EQ(mean.shape.ranks, 4);
  EXPECT_EQ(mean.shape.microbatches, 4);
  // 51.4 % from first forward to last backward (against (p-1)/(m+p-1) = 42.9 %).
  EXPECT_NEAR(mean.bubble->ratio, 0.514, 0.001);
  // A replay without message times misses the makespan by 0.25 %; with them, by less.
  EXPECT_LT(*std::max_element(errors.begin(), errors.end()), 0.002);
}

TEST(StragglerTrace, TheLastStageIsSlow) {
  if (const std::string missing = missing_reference(kTrace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::vector<traces::MeasuredStep> steps = read_steps(reference_folder() + "/" + kTrace);
  std::vector<ObservedStep> observed;
  for (const traces::MeasuredStep& step : steps) observed.push_back({step.program, step.timeline});
  const StragglerReport report = find_stragglers(observed);
  // The cause is a stage imbalance: the last stage also computes the loss.
  const auto slowest = std::max_element(report.stages.begin(), report.stages.end(),
                                        [](const StageSpeed& left, const StageSpeed& right) {
                                          return left.slowness() < right.slowness();
                                        });
  EXPECT_EQ(slowest->stage, 3);
  EXPECT_EQ(slowest->kind, OpKind::kForward);
  EXPECT_GT(slowest->slowness(), 2);
}

// Every op on the critical path is critical in a replay, too: its slack there is at most the sum of
// the path's gaps and messages.
TEST(StragglerTrace, ItsCriticalPathsAreCriticalInReplays) {
  if (const std::string missing = missing_reference(kTrace); !missing.empty())
    GTEST_SKIP() << missing;
  for (const traces::MeasuredStep& step : read_steps(reference_folder() + "/" + kTrace)) {
    const std::vector<InstructionId> path =
        find_critical_path(step.program, step.timeline, Blockers(step.program, step.timeline));
    Nanos computing = 0;
    Nanos others = 0;
    for (const PathPart& part : measure_path(path, step.timeline)) {
      const bool computes = is_compute(step.program.instructions[part.id].op.kind);
      (computes ? computing : others) += part.time;
      others += part.gap;
    }
    const Nanos makespan = compute_makespan(step.timeline);
    EXPECT_EQ(computing + others, makespan) << step.label;
    EXPECT_LT(others, makespan / 100) << step.label;
    const Timeline replayed = replay(step.program, step.timeline);
    const std::vector<Nanos> slack =
        compute_slack(step.program, replayed, Blockers(step.program, replayed));
    for (const InstructionId id : path) {
      const bool computes = is_compute(step.program.instructions[id].op.kind);
      EXPECT_LE(computes ? slack[id] : 0, others) << step.label;
    }
  }
}

// The last stage is the first cause. Equal stages keep the total work, so they save under 15 % of
// the pipeline's 2.011 s, not the 26 % that the medians of the other stages would suggest.
TEST(StragglerTrace, ItsFirstCauseIsTheLastStage) {
  if (const std::string missing = missing_reference(kTrace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::vector<traces::MeasuredStep> steps = read_steps(reference_folder() + "/" + kTrace);
  std::map<std::int64_t, ReplicatedStep> by_number;
  for (const traces::MeasuredStep& step : steps)
    by_number[step.number].push_back({step.program, step.timeline});
  std::vector<ReplicatedStep> replicated;
  for (auto& [_, step] : by_number) replicated.push_back(std::move(step));
  const CauseReport report = find_causes(replicated);
  ASSERT_FALSE(report.causes.empty());
  const Cause& first = report.causes.front();
  EXPECT_EQ(first.kind(), CauseKind::kStage);
  EXPECT_EQ(std::get<UnequalStage>(first.facts).stage, 3);
  EXPECT_NEAR(static_cast<double>(first.saves) / static_cast<double>(report.replayed), 0.146,
              0.003);
}

class NoPipeline : public testing::TestWithParam<const char*> {};

TEST_P(NoPipeline, IsRefusedWithWhatItHasInstead) {
  const std::string file = std::string("traces/kineto/") + GetParam();
  if (const std::string missing = missing_reference(file); !missing.empty())
    GTEST_SKIP() << missing;
  try {
    traces::read_trace(reference_folder() + "/" + file);
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kUsage);
    EXPECT_NE(std::string(error.what()).find("no pipeline op in this trace of PyTorch's profiler"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(" kernel"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kineto, NoPipeline,
    testing::Values("amd_trace_mi250_minitoy_train_ROCm6_2_kineto.json.gz",
                    "critical_path_cuda_event_sync_multi_stream_event_sync_trace.json.gz",
                    "nccl_parser_config_nccl_data.json.gz",
                    "timeline_analysis_sampled_rank-0.json.gz"));

}  // namespace
}  // namespace bubblescope::tests
