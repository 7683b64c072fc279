// Ranking, break-even points and the sweep of `plan` without a model.
#include "sim/analysis/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tools/command.h"
#include "tools/plan/break_even.h"
#include "tools/plan/sweep.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<std::int32_t>;

Plan plan_of(const std::string& schedule, Nanos step, double peak) {
  Plan plan;
  plan.configuration.schedule = schedule;
  plan.step = step;
  plan.peak_units = peak;
  return plan;
}

Configuration configuration_of(const std::string& schedule, std::int32_t ranks,
                               std::int32_t microbatches, std::int32_t chunks = 1) {
  Configuration configuration;
  configuration.shape.chunks = chunks;
  configuration.schedule = schedule;
  configuration.shape.ranks = ranks;
  configuration.shape.microbatches = microbatches;
  return configuration;
}

CommandOutcome plan(const tools::Arguments& arguments) {
  return call_command(tools::run_plan, arguments);
}

TEST(Numbers, ListsAndRangesAreAscendingAndEachOnce) {
  EXPECT_EQ(tools::parse_numbers("4"), Numbers({4}));
  EXPECT_EQ(tools::parse_numbers("4,1,2,2"), Numbers({1, 2, 4}));
  EXPECT_EQ(tools::parse_numbers("2..5"), Numbers({2, 3, 4, 5}));
  EXPECT_EQ(tools::parse_numbers("8..30:8"), Numbers({8, 16, 24}));
  EXPECT_EQ(tools::parse_numbers("3..30x3,4"), Numbers({3, 4, 9, 27}));
}

TEST(Numbers, WhatIsNoListIsRefused) {
  for (const char* text : {"", "0", "x", "5..2", "2..8x1", "2..8:", "2..", "..4", "1..9:0"})
    EXPECT_TRUE(fails_with([&] { tools::parse_numbers(text); }, "'" + std::string(text) + "' "))
        << text;
}

TEST(Plans, AreRankedByTimePerSampleThenMemory) {
  Plan twice = plan_of("twice", 30, 1);  // 15 per sample
  twice.configuration.shape.microbatches = 2;
  const std::vector<Plan> ranked =
      rank_plans({plan_of("slow", 20, 1), plan_of("fat", 16, 9), plan_of("lean", 16, 2), twice});
  std::vector<std::string> names;
  for (const Plan& next : ranked) names.push_back(next.configuration.schedule);
  EXPECT_EQ(names, std::vector<std::string>({"twice", "lean", "fat", "slow"}));
}

TEST(Plans, TheParetoFrontHoldsWhatNothingElseBeatsInBoth) {
  // 10 with 8; 11 with 8 is slower with the same memory; 12 with 4; 13 with 5 is slower with more;
  // 14 with 1.
  const std::vector<Plan> ranked =
      rank_plans({plan_of("a", 10, 8), plan_of("b", 11, 8), plan_of("c", 12, 4),
                  plan_of("d", 13, 5), plan_of("e", 14, 1)});
  EXPECT_EQ(find_pareto_front(ranked), std::vector<std::size_t>({0, 2, 4}));
}

TEST(Plans, TheParetoFrontIsThatOfBruteForce) {
  std::mt19937 random(7);
  for (int attempt = 0; attempt < 300; ++attempt) {
    std::vector<Plan> plans;
    for (auto count = random() % 12; count > 0; --count)
      plans.push_back(
          plan_of("any", 1 + static_cast<Nanos>(random() % 6), static_cast<double>(random() % 6)));
    const std::vector<Plan> ranked = rank_plans(std::move(plans));
    std::vector<std::size_t> front;
    for (std::size_t at = 0; at < ranked.size(); ++at) {
      bool beaten = false;  // by another that is no worse in both, and better in one or first
      for (std::size_t other = 0; other < ranked.size(); ++other) {
        const bool no_worse =
            ranked[other].step <= ranked[at].step && ranked[other].memory() <= ranked[at].memory();
        const bool better =
            ranked[other].step < ranked[at].step || ranked[other].memory() < ranked[at].memory();
        beaten = beaten || (no_worse && (better || other < at));
      }
      if (!beaten) front.push_back(at);
    }
    EXPECT_EQ(find_pareto_front(ranked), front) << "attempt " << attempt;
  }
}

TEST(Plans, MeanBusyAndIdleAddUpToTheStep) {
  const tools::WhatIf what_if({}, false);
  // 4 ranks, 8 micro-batches of F 1 and B 2 ms: 33 ms, of which every rank is busy for 24 (README).
  const Outcome outcome = what_if.evaluate(configuration_of("1f1b", 4, 8));
  ASSERT_TRUE(outcome.plan);
  EXPECT_EQ(outcome.plan->step, 33'000'000);
  EXPECT_EQ(outcome.plan->mean_busy, 24'000'000);
  Nanos idle = 0;
  for (const Nanos cause : outcome.plan->mean_idle) idle += cause;
  EXPECT_EQ(idle, 9'000'000);
}

TEST(BreakEvens, GpipeOvertakes1F1BWithTheFirstNanosecondOfMessages) {
  // Without messages both take (m+p-1) (F+B). GPipe pays 2 (p-1) c for them, 1F1B another 2 c
  // floor((m-1)(p-1)/p) (schedules/1f1b.cc): it is slower from c = 1 ns on.
  const tools::WhatIf what_if({}, false);
  std::vector<Plan> plans;
  for (const char* schedule : {"1f1b", "gpipe"})
    plans.push_back(*what_if.evaluate(configuration_of(schedule, 4, 8)).plan);
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  ASSERT_EQ(ranked[0].configuration.schedule, "1f1b");  // as fast, with less memory
  const tools::BreakEvens break_evens = tools::find_break_evens(what_if, ranked);
  ASSERT_EQ(break_evens.found.size(), 1U);
  EXPECT_EQ(break_evens.found[0].parameter, "p2p");
  EXPECT_EQ(break_evens.found[0].at, 1);
  EXPECT_EQ(break_evens.found[0].runner_up.schedule, "gpipe");
  EXPECT_EQ(break_evens.unaffected, std::vector<std::string>({"i", "w"}));
}

TEST(BreakEvens, NameTheSchedulesThatAreNotCompared) {
  // Every cost gives V-Half another order. It is second here, and ahead at a --p2p of 168.
  tools::PredictOptions options;
  UniformCost& cost = options.cost.uniform;
  cost.forward = 768;
  cost.input_grad = 672;
  cost.weight_grad = 2208;
  cost.message = 672;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  std::vector<Plan> plans;
  for (const char* schedule : {"zb-h1", "gpipe", "v-half"})
    plans.push_back(*what_if.evaluate(configuration_of(schedule, 4, 12)).plan);
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  ASSERT_EQ(ranked[0].configuration.schedule, "zb-h1");
  EXPECT_EQ(tools::find_break_evens(what_if, ranked).left_out, std::vector<std::string>{"v-half"});
}

TEST(BreakEvens, CompareFixedOrdersWhereAnotherScheduleIsTheBest) {
  const tools::WhatIf what_if({}, false);
  std::vector<Plan> plans;
  for (const char* schedule : {"interleaved", "v-half"})
    plans.push_back(*what_if.evaluate(configuration_of(schedule, 4, 16, 2)).plan);
  plans.push_back(*what_if.evaluate(configuration_of("1f1b", 4, 16)).plan);
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  ASSERT_EQ(ranked[0].configuration.schedule, "v-half");
  const tools::BreakEvens break_evens = tools::find_break_evens(what_if, ranked);
  EXPECT_EQ(break_evens.best, "interleaved");
  ASSERT_FALSE(break_evens.found.empty());
  EXPECT_EQ(break_evens.found[0].runner_up.schedule, "1f1b");
}

TEST(BreakEvens, AreWhereTheOrderOfTwoSchedulesTurns) {
  tools::PredictOptions options;
  UniformCost& cost = options.cost.uniform;
  cost.forward = cost.input_grad = 10'000'000;
  cost.weight_grad = 9'000'000;
  cost.message = 400'000;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  std::vector<Plan> plans;
  for (const char* schedule : {"zb-h1", "gpipe"})
    plans.push_back(*what_if.evaluate(configuration_of(schedule, 4, 16)).plan);
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  const tools::BreakEvens break_evens = tools::find_break_evens(what_if, ranked);
  ASSERT_FALSE(break_evens.found.empty());
  const traces::BreakEven& first = break_evens.found[0];
  ASSERT_EQ(first.parameter, "p2p");
  const auto step = [&](const char* schedule, Nanos message) {
    UniformCost with_message = cost;
    with_message.message = message;
    return what_if.step(what_if.lower_plan(configuration_of(schedule, 4, 16)), with_message);
  };
  EXPECT_LE(step("zb-h1", first.at - 1), step("gpipe", first.at - 1));
  EXPECT_GT(step("zb-h1", first.at), step("gpipe", first.at));
}

TEST(BreakEvens, AreFoundWhereRoundingAloneDecides) {
  // Both take equally long wherever two chunks halve their costs without a rest, so DualPipeV, with
  // less memory, is best. At an odd number of nanoseconds its chunks are rounded.
  tools::PredictOptions options;
  UniformCost& cost = options.cost.uniform;
  cost.forward = 2304;
  cost.input_grad = 2016;
  cost.weight_grad = 2496;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  std::vector<Plan> plans;
  plans.push_back(*what_if.evaluate(configuration_of("dualpipev", 2, 12)).plan);
  plans.push_back(*what_if.evaluate(configuration_of("zb-h2", 2, 12)).plan);
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  ASSERT_EQ(ranked[0].configuration.schedule, "dualpipev");
  std::vector<std::tuple<std::string, Nanos>> found;
  for (const traces::BreakEven& turn : tools::find_break_evens(what_if, ranked).found)
    found.emplace_back(turn.parameter, turn.at);
  EXPECT_EQ(found, (std::vector<std::tuple<std::string, Nanos>>{
                       {"p2p", 1}, {"i", 2017}, {"i", 2015}, {"w", 2497}, {"w", 2495}}));
}

// The order of both is the same but for how slices share a cost: at some nanoseconds one is ahead,
// at the next the other.
TEST(BreakEvens, AreNotWhereRoundingAloneDecidesBetweenLongSteps) {
  const CommandOutcome printed = plan({"--pp", "4", "-m", "16", "--schedules", "seq1f1b,terapipe",
                                       "--f", "10", "--format", "json"});
  const Json found = Json::parse(printed.output)["break_even"];
  for (const Json& turn : found) EXPECT_EQ(turn["parameter"], "p2p") << turn;
}

// Chunks share the costs, so schedules within a millionth of these steps of 300 ms are tied; a
// break-even point is nevertheless where the gain begins, not where it exceeds that.
TEST(BreakEvens, AreExactBetweenLongSteps) {
  tools::PredictOptions options;
  UniformCost& cost = options.cost.uniform;
  cost.forward = 10'000'001;
  cost.input_grad = 10'000'003;
  cost.weight_grad = 9'000'002;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  const Configuration split = configuration_of("zb-h1", 4, 8);
  Configuration interleaved = configuration_of("interleaved", 4, 8);
  interleaved.shape.chunks = 2;
  const std::vector<Plan> ranked =
      rank_plans({*what_if.evaluate(split).plan, *what_if.evaluate(interleaved).plan});
  const auto lead = [&](const traces::BreakEven& turn, Nanos value) {
    UniformCost with = cost;
    (turn.parameter == "i" ? with.input_grad : with.weight_grad) = value;
    const auto step = [&](const Plan& plan) {
      return what_if.step(what_if.lower_plan(plan.configuration), with);
    };
    return step(ranked[1]) - step(ranked[0]);
  };
  std::size_t tested = 0;
  for (const traces::BreakEven& turn : tools::find_break_evens(what_if, ranked).found) {
    if (turn.parameter == "p2p") continue;
    const Nanos before = turn.at > turn.now ? turn.at - 1 : turn.at + 1;
    EXPECT_LT(lead(turn, turn.at), 0) << turn.parameter;
    EXPECT_GE(lead(turn, before), 0) << turn.parameter;
    ++tested;
  }
  EXPECT_GT(tested, 0U);
}

TEST(BreakEvens, AreThoseOfTryingEveryValue) {
  tools::PredictOptions options;
  UniformCost& cost = options.cost.uniform;
  cost.forward = 20;  // so few nanoseconds that every value can be tried
  cost.input_grad = 22;
  cost.weight_grad = 15;
  cost.message = 7;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  std::vector<Plan> plans;
  std::vector<std::pair<Configuration, tools::WhatIf::Lowered>> all;
  for (const char* schedule : {"1f1b", "zb-h1", "gpipe", "interleaved-zb", "zb-v", "dualpipe"}) {
    const Configuration which = configuration_of(schedule, 4, 8);
    plans.push_back(*what_if.evaluate(which).plan);
    all.emplace_back(which, what_if.lower_plan(which));
  }
  const std::vector<Plan> ranked = rank_plans(std::move(plans));
  const std::string best = ranked[0].configuration.schedule;
  const auto is_behind = [&](Nanos UniformCost::*parameter, Nanos value) {
    UniformCost with = cost;
    with.*parameter = value;
    Nanos of_best = 0;
    Nanos least = std::numeric_limits<Nanos>::max();
    for (const auto& [which, lowered] : all) {
      const Nanos step = what_if.step(lowered, with);
      least = std::min(least, step);
      if (which.schedule == best) of_best = step;
    }
    return of_best > least;
  };
  std::vector<std::tuple<std::string, Nanos>> expected;
  for (const auto& [name, parameter] :
       {std::pair{"p2p", &UniformCost::message}, std::pair{"i", &UniformCost::input_grad},
        std::pair{"w", &UniformCost::weight_grad}})
    for (const Nanos step : {1, -1}) {
      Nanos value = cost.*parameter;
      while (value >= 0 && value <= 8 * (20 + 22 + 15) && !is_behind(parameter, value))
        value += step;
      if (value >= 0 && value <= 8 * (20 + 22 + 15)) expected.emplace_back(name, value);
    }
  std::vector<std::tuple<std::string, Nanos>> found;
  for (const traces::BreakEven& turn : tools::find_break_evens(what_if, ranked).found)
    found.emplace_back(turn.parameter, turn.at);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(expected.empty());
}

TEST(PlanCommand, CountsTheLinksThatMessagesShareAsSimulateDoes) {
  const tools::Arguments costs{
      "--pp",     "4",   "-m",        "8",
      "--p2p",    "0.1", "--network", "bytes=64MiB,link=400,per-node=2,nic=200",
      "--format", "json"};
  tools::Arguments question = costs;
  question.insert(question.end(), {"--schedules", "1f1b,zb-v"});
  const Json plans = Json::parse(plan(question).output)["plans"];
  ASSERT_EQ(plans.size(), 2U);
  for (const Json& entry : plans) {
    tools::Arguments simulated{entry["schedule"].get<std::string>()};
    simulated.insert(simulated.end(), costs.begin(), costs.end());
    testing::internal::CaptureStdout();
    tools::run_simulate(simulated);
    std::fflush(stdout);
    const Json report = Json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(entry["step_ns"], report["makespan_ns"]) << entry;
    EXPECT_EQ(entry["lower_bound_ns"], report["lower_bound_ns"]) << entry;
  }
}

TEST(PlanCommand, ItsStepsAreThoseOfSimulate) {
  const CommandOutcome printed =
      plan({"--pp", "3,4", "-m", "8", "--schedules", "zb-h1,1f1b", "--f", "3", "--i", "4", "--w",
            "2", "--p2p", "0.5", "--format", "json"});
  ASSERT_EQ(printed.status, 0);
  const Json plans = Json::parse(printed.output)["plans"];
  ASSERT_EQ(plans.size(), 4U);
  for (const Json& entry : plans) {
    testing::internal::CaptureStdout();
    tools::run_simulate({entry["schedule"], "--pp", std::to_string(entry["pp"].get<int>()), "-m",
                         "8", "--f", "3", "--i", "4", "--w", "2", "--p2p", "0.5", "--format",
                         "json"});
    std::fflush(stdout);
    const Json report = Json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(entry["step_ns"], report["makespan_ns"]) << entry;
    EXPECT_EQ(entry["bubble_ratio"], report["bubble"]["ratio"]) << entry;
  }
}

TEST(PlanCommand, AnswersTheSameOnAnyNumberOfThreads) {
  const tools::Arguments question{"--pp", "2..6", "--vpp", "1,2", "-m", "4..12", "--format", "csv"};
  tools::Arguments one = question;
  tools::Arguments three = question;
  one.insert(one.end(), {"--threads", "1"});
  three.insert(three.end(), {"--threads", "3"});
  EXPECT_EQ(plan(one).output, plan(three).output);
}

TEST(PlanCommand, TotalsAreDividedByTheStages) {
  // 40 ms over 4 ranks is 10 ms each: 1F1B takes (8+3) (10 + 20) ms, and rank 0 holds 4
  // micro-batches of a quarter of the model.
  const CommandOutcome printed =
      plan({"--pp", "4", "-m", "8", "--schedules", "1f1b", "--total-f", "40", "--total-i", "40",
            "--total-w", "40", "--format", "json"});
  const Json first = Json::parse(printed.output)["plans"][0];
  EXPECT_EQ(first["step_ns"], 330'000'000);
  EXPECT_EQ(first["peak_units"], 1.0);
}

TEST(PlanCommand, ExitsWith1WhenNoPlanFits) {
  const CommandOutcome printed =
      plan({"--pp", "4", "-m", "8", "--schedules", "gpipe,1f1b", "--cap", "3"});
  EXPECT_EQ(printed.status, 1);
  EXPECT_NE(printed.output.find("no plan fits"), std::string::npos);
  EXPECT_NE(printed.output.find("holds 8 at its peak, over --cap 3"), std::string::npos);
}

TEST(PlanCommand, RefusesABestPlanThatTakesNoTime) {
  const CommandOutcome outcome =
      run_with_messages("plan --pp 2 -m 4 --schedules 1f1b,gpipe --f 0 --b 0");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("takes no time"), std::string::npos) << outcome.output;
}

TEST(PlanCommand, RanksLosersByWhatTheyWaitFor) {
  const CommandOutcome printed = plan({"--pp", "4", "-m", "8", "--schedules", "1f1b,naive"});
  // naive: 8 (1 + 2) 4 = 96 ms instead of 33.
  EXPECT_NE(printed.output.find("naive           #2     +190.9 %"), std::string::npos)
      << printed.output;
  EXPECT_NE(printed.output.find("dependency +"), std::string::npos);
}

TEST(PlanCommand, DrawsAHeatMapOfShapes) {
  const std::string svg =
      std::filesystem::temp_directory_path() / ("heat" + std::to_string(getpid()) + ".svg");
  const CommandOutcome printed =
      plan({"--pp", "2,4", "-m", "4,8", "--schedules", "1f1b", "--svg", svg});
  // 3 (m+p-1) / m ms a sample: 3.75, 3.375 (the best), 5.25, 4.125
  for (const char* cell : {"a +11.1%", "a +0.0%", "a +55.6%", "a +22.2%"})
    EXPECT_NE(printed.output.find(cell), std::string::npos) << cell;
  std::ifstream file(svg);
  const std::string picture{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(picture.find("1f1b: pp 4, m 8, 33 ms, bubble 27.3 %"), std::string::npos);
  std::filesystem::remove(svg);
}

}  // namespace
}  // namespace bubblescope::tests
