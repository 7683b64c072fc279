// From traces to predictions: analyze --costs-out, --try, --each and --fail-if.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/ir/quantile.h"
#include "sim/ir/registry.h"
#include "sim/model/schedule_def.h"
#include "tests/golden/reference_data.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kCosts = " --pp 4 -m 8 --f 10 --i 11 --w 9 --p2p 0.4";

class JobCosts : public TemporaryFolder {
 protected:
  /// Records a step as run.json.
  void record(const std::string& simulation) const {
    EXPECT_EQ(run_command("simulate " + simulation + " --trace " + path("run.json")).status, 0);
  }

  /// Fits costs to a trace, and returns the flag that names them.
  std::string fit(const std::string& trace, const std::string& flags = "") const {
    const std::string command =
        "analyze " + trace + " --costs-out " + path("costs.json") + " " + flags;
    EXPECT_EQ(run_command(command).status, 0) << command;
    return " --costs " + path("costs.json");
  }
};

// The trace says everything, so the fitted costs give any schedule the time that the costs of the
// simulation give it.
TEST_F(JobCosts, OfASimulatedStepPredictOtherSchedules) {
  record(std::string("zb-h1") + kCosts);
  const std::string costs = fit(path("run.json"));
  for (const std::string schedule : {"zb-h1", "1f1b", "gpipe", "zb-h2"})
    EXPECT_EQ(read_report("simulate " + schedule + " --pp 4 -m 8" + costs)["makespan_ns"],
              read_report("simulate " + schedule + kCosts)["makespan_ns"])
        << schedule;
}

// The first and the last stage take longer in forwards alone, as an embedding and a head do.
TEST_F(JobCosts, SayWhatIsAnEstimate) {
  traces::write_file(path("ends.json"), R"({"format": "bubblescope-costs/1", "stages": [
    {"forward": 15, "backward": 20}, {"forward": 10, "backward": 20},
    {"forward": 10, "backward": 20}, {"forward": 15, "backward": 20}]})");
  record("1f1b --pp 4 -m 8 --costs " + path("ends.json"));
  const std::string estimate =
      "the first and the last count as having an embedding or a head: an estimate from their times";
  const std::string fitted = " --costs-out " + path("costs.json");
  const std::string output = run_with_messages("analyze " + path("run.json") + fitted).output;
  EXPECT_NE(output.find(estimate), std::string::npos) << output;
  EXPECT_EQ(Json::parse(traces::read_file(path("costs.json")))["ends"], "extra-work");
  record("1f1b --pp 4 -m 8 --f 10 --b 20");
  const std::string equal = run_with_messages("analyze " + path("run.json") + fitted).output;
  EXPECT_EQ(equal.find("an estimate from their times"), std::string::npos) << equal;
}

// All ranks stand still for 4 % of the step, which no op or message takes.
TEST_F(JobCosts, SayWhatTheyMakeOfAStepThatTheyMiss) {
  record(std::string("1f1b") + kCosts);
  Json trace = Json::parse(traces::read_file(path("run.json")));
  const double end = read_report("analyze " + path("run.json"))["makespan_ns"].get<double>() / 1e3;
  for (Json& event : trace["traceEvents"])
    if (event.value("ts", 0.0) > end / 2) event["ts"] = event["ts"].get<double>() + 0.04 * end;
  std::ofstream(path("late.json")) << trace;
  const std::string fitted = " --costs-out " + path("costs.json");
  const std::string note = "with these costs the measured schedule takes ";
  EXPECT_NE(run_with_messages("analyze " + path("late.json") + fitted).output.find(note),
            std::string::npos);
  EXPECT_EQ(run_with_messages("analyze " + path("run.json") + fitted).output.find(note),
            std::string::npos);
}

// Four measured stages are cut for 8 ranks, and for 4 or 8 of four chunks each; not for 4 of one.
TEST_F(JobCosts, PlansSayWhereTheyCutStages) {
  record(std::string("1f1b") + kCosts);
  const std::string costs = fit(path("run.json"));
  const std::string plan = "plan -m 16 --schedules 1f1b,interleaved" + costs;
  const std::string cut = "costs.json has 4 stages and plans have ";
  EXPECT_NE(
      run_with_messages(plan + " --pp 4,8 --vpp 4")
          .output.find(cut + "8, 16, 32: their work is cut or joined as if it were spread evenly"),
      std::string::npos);
  EXPECT_EQ(run_with_messages("plan -m 16 --pp 4 --schedules 1f1b" + costs).output.find(cut),
            std::string::npos);
}

/// F, I and W take 10, 11 and 9 ms per rank, the messages 0.4 ms.
std::string jittered_costs(std::int32_t stages, std::mt19937& random) {
  std::uniform_real_distribution<double> jitter(0.93, 1.07);
  Json costs{{"format", "bubblescope-costs/1"}, {"message", {{"latency", "400us"}}}};
  const std::map<std::string, double> times{
      {"forward", 10}, {"input_grad", 11}, {"weight_grad", 9}};
  for (const auto& [kind, ms] : times) {
    Json& lists = costs[kind]["per_microbatch"];
    for (std::int32_t stage = 0; stage < stages; ++stage)
      for (int microbatch = 0; microbatch < 16; ++microbatch)
        lists[static_cast<std::size_t>(stage)].push_back(jitter(random) * ms * 4 / stages *
                                                         (stage + 1 == stages ? 1.1 : 1));
  }
  return costs.dump();
}

// Every op differs by up to 7 % from the mean of its stage and kind, and the last stage is 10 %
// heavier. Costs that are fitted to such a step of a schedule give that schedule its time back: the
// mean over the fitted noise, which knows no op by name, within 1 %.
TEST_F(JobCosts, GiveEveryScheduleItsOwnTimeBack) {
  std::mt19937 random(1);
  int tried = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (def.splits_output_layer) continue;  // its shards need costs of their own
    const std::string sizes =
        def.name + " --pp 4 -m 16" + (def.slices_sequences ? " --slices 4" : "");
    ScheduleRequest request;
    request.shape.ranks = 4;
    request.shape.microbatches = 16;
    request.shape.chunks = def.default_chunks;
    if (def.slices_sequences) request.shape.slices = 4;
    const std::int32_t stages = build_schedule(def, request)->stages_per_pipeline();
    std::ofstream(path("jitter.json")) << jittered_costs(stages, random);
    record(sizes + " --costs " + path("jitter.json"));
    const double measured = read_report("analyze " + path("run.json"))["makespan_ns"].get<double>();
    const Json predicted =
        read_report("simulate " + sizes + fit(path("run.json"), "--split-b 0.55"));
    const Json& noise = predicted["noise"];
    const double mean =
        noise.is_null() ? predicted["makespan_ns"].get<double>() : noise["mean_ns"].get<double>();
    EXPECT_NEAR(mean, measured, 0.01 * measured) << def.name;
    ++tried;
  }
  EXPECT_GT(tried, 25);
}

// The mean step keeps messages of 3 ms, which all messages take; free ones would make it shorter.
TEST_F(JobCosts, CausesBelowTheMeanStepAreNamed) {
  record("1f1b --pp 4 -m 8 --f 10 --b 20 --p2p 3");
  const std::string text = run_command("analyze " + path("run.json")).output;
  EXPECT_NE(text.find("(it would be shorter still without messages between ranks)"),
            std::string::npos)
      << text;
  record("1f1b --pp 4 -m 8 --f 10 --b 20");
  EXPECT_EQ(run_command("analyze " + path("run.json")).output.find("shorter yet"),
            std::string::npos);
}

TEST_F(JobCosts, AreTakenByEveryCommandWithCosts) {
  record(std::string("zb-h1") + kCosts);
  const std::string costs = fit(path("run.json"));
  const Json compared = read_report("compare 1f1b,zb-v --pp 4 -m 8" + costs);
  EXPECT_EQ(compared["reports"].size(), 2u);
  const Json planned = read_report("plan --pp 4 -m 8" + costs);
  EXPECT_FALSE(planned["plans"].empty());
  const Json found = read_report("search --pp 4 -m 8 --time-limit 1s" + costs);
  EXPECT_LE(found["makespan_ns"],
            read_report(std::string("simulate zb-h1") + kCosts)["makespan_ns"]);
  const Json stages =
      read_report("partition " + path("costs.json") + " --stages 2 --method minmax")["stages"];
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0]["time_ns"], 60'000'000);  // two stages of 10 + 20 ms
}

// A stage of 10, 11, 9 ms becomes two of half of that: as if chunks had been simulated.
TEST_F(JobCosts, AreCutForSchedulesWithMoreStages) {
  record(std::string("zb-h1") + kCosts);
  const std::string costs = fit(path("run.json"));
  for (const std::string schedule : {"zb-v", "interleaved"})
    EXPECT_EQ(read_report("simulate " + schedule + " --pp 4 -m 8" + costs)["makespan_ns"],
              read_report("simulate " + schedule + kCosts)["makespan_ns"])
        << schedule;
}

TEST_F(JobCosts, AreNotFittedToOpsThatTakeNoTime) {
  record("1f1b --pp 2 -m 2 --f 0 --b 0");
  EXPECT_EQ(read_report("analyze " + path("run.json"))["makespan_ns"], 0);
  const CommandOutcome outcome = run_with_messages("analyze " + path("run.json") + " --try gpipe");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("no op of the trace takes any time"), std::string::npos)
      << outcome.output;
}

TEST_F(JobCosts, GatesKnowTheNumbersOfTraces) {
  record(std::string("1f1b") + kCosts);
  const std::string analyze = "analyze " + path("run.json") + " --fail-if ";
  EXPECT_EQ(run_command(analyze + "'replay_error>0.01'").status, 0);
  EXPECT_EQ(run_command(analyze + "'slowdown>1.1'").status, 0);
  EXPECT_EQ(run_command(analyze + "'cause_communication_s<1'").status, 1);
  EXPECT_EQ(run_command(analyze + "'cause_nothing_s<1'").status, 2);
  EXPECT_EQ(run_command(analyze + "'step_ns_change>0'").status, 2);  // there is nothing before it
}

// 1F1B takes (m + p - 1)(f + b) with free messages: 11 x 30 ms, and 11 x 33 ms a night later.
TEST_F(JobCosts, JobsAreComparedOverTime) {
  record("1f1b --pp 4 -m 8 --f 10 --b 20");
  std::filesystem::rename(path("run.json"), path("monday.json"));
  record("1f1b --pp 4 -m 8 --f 11 --b 22");
  const std::string analyze = "analyze --each " + path("monday.json") + " " + path("run.json");
  const CommandOutcome outcome = run_command(analyze);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find(",problem,step_ns_change\n"), std::string::npos);
  EXPECT_NE(outcome.output.find(",0.000000\n"), std::string::npos) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with(",0.100000\n")) << outcome.output;
  const CommandOutcome failed = run_with_messages(analyze + " --fail-if 'step_ns_change>0.05'");
  EXPECT_EQ(failed.status, 1);
  EXPECT_NE(failed.output.find("/run.json: failed: step_ns_change>0.05"), std::string::npos)
      << failed.output;
  EXPECT_EQ(run_command(analyze + " --fail-if 'step_ns_change>0.15'").status, 0);
}

/// The number before " % longer" or " % shorter" in a note.
double percent_of(const std::string& note, const std::string& direction) {
  const std::size_t end = note.find(" % " + direction);
  if (end == std::string::npos) return -1;
  const std::size_t begin = note.rfind(' ', end - 1) + 1;
  return std::stod(note.substr(begin, end - begin));
}

// The last stage runs 30 % longer than the others, its input gradients 60 %, as a head makes it. If
// it were its layers, stages of twice the size would differ twice as much, too. With the same
// factor in all kinds it is the layers, and the head what the interval covers besides.
TEST_F(JobCosts, TriesWithOtherStagesSayWhatIsNotKnown) {
  const auto write_costs = [&](const std::string& file, const std::string& times,
                               const std::string& input_grads) {
    std::ofstream(path(file)) << R"({"format":"bubblescope-costs/1","forward":)" << times
                              << R"(,"input_grad":)" << input_grads << R"(,"weight_grad":)" << times
                              << "}";
    return " --pp 4 -m 8 --costs " + path(file);
  };
  const auto makespan_with = [&](const std::string& costs) {
    return read_report("simulate 1f1b" + costs)["makespan_ns"].get<double>();
  };
  for (const bool is_head : {true, false}) {
    const std::string extra = is_head ? "6" : "3";
    record("zb-v" +
           write_costs("uneven.json", "[1,1,1,1,1,1,1,1.3]", "[1,1,1,1,1,1,1,1." + extra + "]"));
    const double once =
        makespan_with(write_costs("once.json", "[2,2,2,2.3]", "[2,2,2,2." + extra + "]"));
    const double layers = makespan_with(
        write_costs("layers.json", "[2,2,2,2.6]", is_head ? "[2,2,2,3.2]" : "[2,2,2,2.6]"));
    const Json report = read_report("analyze " + path("run.json") + " --try 1f1b");
    const Json& row = report["tries"][1];
    EXPECT_NEAR(row["step_ns"].get<double>(), is_head ? once : layers, 10);
    EXPECT_NEAR(row["p5_ns"].get<double>(), once, 10);
    EXPECT_NEAR(row["p95_ns"].get<double>(), layers, 10);
    const std::string note = report["try_notes"][0];
    const double change = is_head ? layers / once - 1 : 1 - once / layers;
    EXPECT_NEAR(percent_of(note, is_head ? "longer" : "shorter"), 100 * change, 0.06) << note;
  }
  record(std::string("zb-v") + kCosts);
  EXPECT_EQ(read_report("analyze " + path("run.json") + " --try 1f1b")["try_notes"][0]
                .get<std::string>()
                .find("embedding"),
            std::string::npos);
}

TEST_F(JobCosts, EachTraceIsARow) {
  record(std::string("1f1b") + kCosts);
  std::ofstream(path("broken.json")) << "{";
  const CommandOutcome outcome =
      run_command("analyze --each " + path("run.json") + " " + path("broken.json"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3);
  EXPECT_NE(outcome.output.find("run.json,1f1b,4,8,1,"), std::string::npos) << outcome.output;
  // A row shows no step that could be saved.
  const CommandOutcome saved =
      run_with_messages("analyze --each " + path("run.json") + " --save " + path("step.json"));
  EXPECT_EQ(saved.status, 2);
  EXPECT_NE(saved.output.find("leave --save out"), std::string::npos) << saved.output;
}

// Every op is said to take half of its time, so that a replay takes half as long as the step.
TEST_F(JobCosts, NothingIsPredictedFromStepsThatTheOpsDoNotExplain) {
  record(std::string("1f1b") + kCosts);
  Json trace = Json::parse(traces::read_file(path("run.json")));
  trace.erase("otherData");
  for (Json& event : trace["traceEvents"])
    if (event.contains("dur")) event["dur"] = event["dur"].get<double>() / 2;
  std::ofstream(path("halved.json")) << trace.dump();
  const std::string analyze = "analyze " + path("halved.json") + " --try zb-h1 --split-b 0.5" +
                              " --costs-out " + path("halved_costs.json");
  const CommandOutcome outcome = run_command(analyze + " --format json");
  EXPECT_EQ(outcome.status, 1);
  const Json report = Json::parse(outcome.output);
  EXPECT_EQ(report["trust"]["verdict"], "none");
  EXPECT_TRUE(report["tries"].is_null());
  EXPECT_FALSE(std::filesystem::exists(path("halved_costs.json")));
  EXPECT_EQ(run_command(analyze).output.find("without:"), std::string::npos);
}

/// The steps of StragglerAnalysis' trace whose rank in time is at least `first` and below `last`.
std::string write_steps(const std::string& to, std::size_t first, std::size_t last) {
  const Json all =
      Json::parse(traces::read_file(reference_folder() + "/traces/straggler/timeline-ST.json.gz"));
  std::set<std::int64_t> numbers;
  const auto step_of = [](const Json& event) {
    return event.contains("args") ? event["args"].value("step", std::int64_t{-1}) : -1;
  };
  for (const Json& event : all)
    if (step_of(event) >= 0) numbers.insert(step_of(event));
  const std::vector<std::int64_t> sorted(numbers.begin(), numbers.end());
  Json some = Json::array();
  for (const Json& event : all) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), step_of(event));
    const auto rank = static_cast<std::size_t>(at - sorted.begin());
    if (step_of(event) < 0 || (rank >= first && rank < last)) some.push_back(event);
  }
  std::ofstream(to) << some.dump();
  return to;
}

// The first 8 of 32 steps of a production job with 2 replicas predict the other 24.
TEST_F(JobCosts, OfTheFirstStepsPredictTheOthers) {
  if (const std::string missing = missing_reference("traces/straggler/timeline-ST.json.gz");
      !missing.empty())
    GTEST_SKIP() << missing;
  const std::string costs = fit(write_steps(path("first.json"), 0, 8));
  const Json predicted = read_report("simulate 1f1b --pp 4 -m 4" + costs);
  EXPECT_EQ(predicted["replicas"], 2);
  std::vector<double> measured;
  double sum = 0;
  const Json rest = read_report("analyze " + write_steps(path("rest.json"), 8, 32));
  for (const Json& step : rest["steps"]) {
    measured.push_back(step["pipeline_ns"].get<double>());
    sum += measured.back();
  }
  ASSERT_EQ(measured.size(), 24u);
  const double mean = sum / 24;
  const double p95 = quantile(measured, 95);
  EXPECT_NEAR(predicted["noise"]["mean_ns"].get<double>(), mean, 0.03 * mean);
  EXPECT_NEAR(predicted["noise"]["p95_ns"].get<double>(), p95, 0.02 * p95);
}

}  // namespace
}  // namespace bubblescope::tests
