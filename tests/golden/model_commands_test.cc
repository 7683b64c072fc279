// Commands with a model: what they print, and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "sim/ir/registry.h"
#include "sim/model/schedule_def.h"
#include "tests/support/command.h"
#include "tests/support/test_paths.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

void expect_says(const std::string& arguments, int status, const std::string& says) {
  const CommandOutcome outcome = run_with_messages(arguments);
  EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
}

TEST(ModelCommands, TakeOneSourceOfCosts) {
  const std::string model = "simulate 1f1b --pp 4 -m 4 --model llama3-8b ";
  expect_says(model + "--f 2", 2, "--model gives all costs; leave out --f\n");
  expect_says(model + "--costs x.json", 2, "leave out --costs");
  expect_says(model + "--network bytes=1MiB,link=100", 2, "leave it, --model or --layout out");
  expect_says(model + "--recompute full,none,none,none", 2, "give --recompute one entry");
  expect_says(model + "--layout 'Et*8|t*8|t*8|t*9L'", 1, "33 layers t on 4 stages");
  expect_says("simulate interleaved --pp 2 -m 4 --model llama3-8b --layout 'Et*7|t*9|t*9|t*7L'", 0,
              "layers per stage  7 9*2 7");
}

// The stages have 8 layers each, so that a block of as many or more is all.
TEST(ModelCommands, RecomputeTheLayersThatMegatronsFlagsName) {
  const std::string step =
      "simulate 1f1b --pp 4 -m 8 --model llama3-8b --layout 'Et*8|t*8|t*8|t*8L'";
  const auto makespan = [&](const std::string& flags) {
    return read_report(step + flags)["makespan_ns"].get<Nanos>();
  };
  const std::string full = " --recompute-granularity full --recompute-method ";
  EXPECT_EQ(makespan(" --recompute-granularity full"), makespan(" --recompute full"));
  EXPECT_EQ(makespan(full + "uniform --recompute-num-layers 4"), makespan(" --recompute full"));
  EXPECT_EQ(makespan(full + "block --recompute-num-layers 0"), makespan(""));
  EXPECT_EQ(makespan(full + "block --recompute-num-layers 9"), makespan(" --recompute full"));
  EXPECT_EQ(makespan(" --recompute-method block --recompute-num-layers 2"),
            makespan(full + "block --recompute-num-layers 2"));
  expect_says(step + " --explain" + full + "block --recompute-num-layers 2", 0, "8 of 32 layers");
  expect_says(step + full + "block", 2, "say how many by --recompute-num-layers");
  expect_says(step + full + "uniform --recompute-num-layers 0", 2, "a group has 1 layer or more");
  expect_says(step + " --recompute full --recompute-num-layers 2", 2,
              "needs --recompute-method: uniform");
  expect_says(step + " --recompute selective --recompute-method block --recompute-num-layers 2", 2,
              "which layers --recompute full covers");
  expect_says(step + " --recompute-modules mlp --recompute-method uniform", 2, "leave one of them");
  expect_says("simulate 1f1b --pp 4 -m 8 --recompute full --recompute-num-layers 2", 0,
              "--recompute-num-layers");
  expect_says(
      "plan --model llama3-8b --gpus 8 --global-batch-size 16 --recompute none "
      "--recompute-method block --recompute-num-layers 2",
      2, "give that as well");
}

// The experts of 8 ranks, each over 4 tensor ranks, would need more than 8 ranks.
TEST(ModelCommands, SayWhichTensorRanksExpertsHave) {
  const std::string step =
      "simulate 1f1b --pp 4 -m 8 --model mixtral-8x7b --tp 4 --dp 2 --micro-batch-size 1 --ep ";
  expect_says(step + "8", 0,
              "--etp 1 is assumed, because --ep 8 does not divide --dp times --cp (2)");
  for (const char* const flags : {"8 --etp 1", "2"})
    EXPECT_EQ(run_with_messages(step + flags).output.find("is assumed"), std::string::npos);
  expect_says(step + "2 --explain", 0, "etp 4, as tp, which is Megatron-LM's default");
}

TEST(ModelCommands, PlanTheTensorRanksOfExperts) {
  const std::string plan =
      "plan --gpus 32 --global-batch-size 64 --pp 4 --tp 4 --micro-batch-size 1 --recompute none "
      "--schedules 1f1b --split balanced --model ";
  std::set<int> tried;
  const Json report = read_report(plan + "mixtral-8x7b --ep 2 --etp 1,2,4");
  for (const Json& one : report["plans"]) {
    tried.insert(one["etp"].get<int>());
    EXPECT_EQ(one["ep"], 2);
  }
  EXPECT_EQ(tried, (std::set<int>{1, 2, 4}));
  expect_says(plan + "mixtral-8x7b --ep 8 --etp 1,4", 0, "--etp 4: ");
  expect_says(plan + "mixtral-8x7b --etp 1,3", 0,
              "--etp 3: it does not divide the ranks of any stage");
  expect_says(plan + "llama3-8b --etp 2", 0, "--etp changes nothing: the model has no experts");
}

// Tensor ranks leave room for a larger first stage, so the surplus layers go there.
TEST(ModelCommands, ExplainHowTheLayersWereChosen) {
  const std::string shape = " --pp 8 -m 16 --model llama3-8b --tp 4";
  const std::string first = "[5,5,4,4,4,4,4,2]";
  expect_says("simulate 1f1b --explain" + shape, 0, "layers: by simulation of ");
  expect_says("simulate 1f1b --explain --layout 'Et*4|(t*4|)*6t*4L'" + shape, 0,
              "layers per stage  4*8");
  EXPECT_EQ(read_report("simulate 1f1b" + shape)["model"]["layers_per_stage"].dump(), first);
  const Json plan = read_report(
      "plan --schedules 1f1b --pp 8 --tp 4 --gpus 32 --global-batch-size 16 --micro-batch-size 1 "
      "--recompute none --split balanced --model llama3-8b");
  EXPECT_EQ(plan["plans"][0]["layout"], "Et*5|t*5|(t*4|)*5ttL");
  EXPECT_EQ(plan["plans"][0]["step_ns"], read_report("simulate 1f1b" + shape)["makespan_ns"]);
}

TEST(ModelCommands, CompareWhatSimulateSays) {
  const std::string flags = " --pp 4 -m 8 --model llama3-8b --tp 2 --seq-length 4096 ";
  const Json both = read_report("compare 1f1b,zb-h1" + flags + "--micro-batch-size 2");
  for (const Json& report : both["reports"]) {
    const std::string name = report["schedule"];
    const Json alone = read_report("simulate " + name + flags + "--micro-batch-size 2");
    EXPECT_EQ(report["makespan_ns"], alone["makespan_ns"]) << name;
    EXPECT_EQ(report["ranks"], alone["ranks"]) << name;
  }
  expect_says("compare 1f1b,gpipe --pp 4 -m 64 --model llama3-8b", 0,
              "gpipe: 4 of 4 ranks do not fit");
}

TEST(ModelCommands, CompareMarksSchedulesThatDoNotFit) {
  const std::string flags = " --pp 4 -m 64 --model llama3-8b";
  const Json reports = read_report("compare 1f1b,gpipe" + flags)["reports"];
  EXPECT_EQ(reports[0]["fits"], true);
  EXPECT_EQ(reports[1]["fits"], false);
  expect_says("compare 1f1b,gpipe --wide" + flags, 0, "  NO\n");
  EXPECT_EQ(run_command("compare 1f1b --wide" + flags).output.find("fits"), std::string::npos);
}

TEST(ModelCommands, CompareSaysOnceThatACapIsInMicrobatches) {
  const std::string output =
      run_with_messages("compare 1f1b,zb-auto,gpipe --pp 4 -m 8 --model llama3-8b --cap 4").output;
  const std::size_t first = output.find("not bytes");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(output.find("not bytes", first + 1), std::string::npos) << output;
}

// 64 micro-batches fit on none of the devices at once.
TEST(ModelCommands, SearchedSchedulesKeepWithinTheDevices) {
  const std::string flags = " --pp 4 -m 64 --model llama3-70b --gpu h100 --tp 8";
  for (const char* const schedule : {"zb-auto", "v-auto"}) {
    const Json report = read_report("simulate " + (schedule + flags));
    EXPECT_EQ(report["fits"], true) << schedule << " " << report["head_room_bytes"];
    expect_says("simulate " + (schedule + flags), 0, "of a device, which is its cap; --cap gives");
  }
  EXPECT_EQ(read_report("simulate zb-auto --cap 64" + flags)["fits"], false);
}

// zb-1p is an order within the devices, and its name is one of the caps that zb-auto may choose.
TEST(ModelCommands, SearchedSchedulesAreNoLongerThanThoseWithCapsOfTheirOwn) {
  const std::string flags = " --pp 4 -m 8 --model llama3-8b";
  const Json named = read_report("simulate zb-1p" + flags);
  ASSERT_EQ(named["fits"], true);
  for (const char* const cap : {"", " --cap 75GiB"})
    EXPECT_LE(read_report("simulate zb-auto" + flags + cap)["max_span_ns"], named["max_span_ns"])
        << cap;
}

/// The flags of a command's --help that begin a line, those of one heading, or of all where it is
/// empty: "--tp", "--tensor-model-parallel-size", ...
std::set<std::string> flags_of(const std::string& command, const std::string& heading) {
  std::istringstream help(run_command(command + " --help").output);
  std::set<std::string> flags;
  bool inside = heading.empty();
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ") && !heading.empty()) inside = line.starts_with(heading);
    const std::size_t start = line.find_first_not_of(' ');
    if (!inside || start != 2 || line[start] != '-') continue;
    std::istringstream names(line.substr(start, line.find(' ', start) - start));
    for (std::string name; std::getline(names, name, ',');) flags.insert(name);
  }
  return flags;
}

TEST(ModelCommands, TakeTheSameFlags) {
  const std::set<std::string> flags = flags_of("simulate", "A model instead of costs");
  ASSERT_GT(flags.size(), 25U);
  EXPECT_TRUE(flags.contains("--precision"));
  // plan has --dp from --gpus, and search wants micro-batches that are alike and ops that are
  // whole.
  const std::map<std::string, std::set<std::string>> without{
      {"compare", {}},
      {"run", {}},
      {"search",
       {"--lengths", "--parts", "--recompute-method", "--recompute-modules",
        "--recompute-num-layers"}},
      {"plan", {"--dp", "--lengths", "--recompute-modules"}}};
  for (const auto& [command, lacking] : without) {
    const std::set<std::string> known = flags_of(command, "");
    for (const std::string& flag : flags)
      EXPECT_EQ(known.contains(flag), !lacking.contains(flag)) << command << " " << flag;
  }
}

TEST(ModelCommands, PredictInTheSamePrecision) {
  const std::string flags =
      " --pp 4 -m 8 --model llama3-8b --tp 2 --dp 2 --micro-batch-size 2 --seq-length 4096 "
      "--runtime "
      "nemo --precision ";
  const auto makespans = [&](const std::string& precision) {
    const Json alone = read_report("simulate 1f1b" + flags + precision);
    const Json beside = read_report("compare 1f1b,gpipe" + flags + precision);
    EXPECT_EQ(beside["reports"][0]["makespan_ns"], alone["makespan_ns"]) << precision;
    return alone["makespan_ns"].get<std::int64_t>();
  };
  EXPECT_LT(makespans("fp8"), makespans("bf16"));
  EXPECT_EQ(makespans("fp16"), makespans("bf16"));
}

TEST(ModelCommands, RefuseAPrecisionThatIsNotTheirs) {
  const std::string shape = " 1f1b --pp 2 -m 2 --precision ";
  expect_says("compare" + shape + "fp32 --model llama3-8b", 2, "GEMMs of a model are in bf16");
  expect_says("compare" + shape + "fp8 --backend cpu --work transformer", 2,
              "transformer of --work transformer is in fp32 or bf16");
  expect_says("run" + shape + "fp8 --backend cpu --work transformer", 2, "is in fp32 or bf16");
  expect_says("run" + shape + "fp8 --f 1", 0,
              "--precision changes nothing without --model or --work transformer");
  expect_says("run" + shape + "bf16 --model llama3-8b --work transformer", 2,
              "ops of --work transformer take their real time");
  expect_says("compare" + shape + "fp8 --model llama3-8b --gpu a100", 2, "has no 8-bit GEMMs");
}

// The backend sleeps for the times of the model; a test can wait for a hundredth of them.
TEST(ModelCommands, RunForTheTimesOfTheModel) {
  const std::string flags = " 1f1b --pp 2 -m 2 --model llama3-8b --seq-length 128 --slowdown 0.01";
  const Json predicted = read_report("simulate" + flags);
  const Json measured = read_report("run" + flags + " --backend cpu --warmup 0 --steps 1");
  EXPECT_GE(measured["makespan_ns"].get<double>(), 0.9 * predicted["makespan_ns"].get<double>());
}

// A search ends with the gradients; everything else must equal what simulate counts.
TEST(ModelCommands, SearchWithTheTimesOfTheModel) {
  const std::string flags = " --pp 2 -m 3 --model llama3-8b --dp 8 ";
  const Json found = read_report("search" + flags + "--time-limit 1s");
  const Json fixed =
      read_report("simulate zb-h2" + flags + "--optimizer none --grad-reduction none");
  EXPECT_LE(found["makespan_ns"], fixed["makespan_ns"]);
  EXPECT_GE(found["makespan_ns"], fixed["lower_bound_ns"]);
}

// Between nodes a copy is too slow to hide, so a plan that forgot it would be wrong.
TEST(ModelCommands, PlanAndSimulateTheSameCopies) {
  const std::string flags = " --model llama3-8b --gpus-per-node 1 --tp 1 ";
  const Json plans = read_report(
      "plan --schedules bpipe --pp 4 --gpus 4 --global-batch-size 16 "
      "--micro-batch-size 1 --recompute none --split balanced" +
      flags);
  const Json step = read_report("simulate bpipe --pp 4 -m 16" + flags);
  const Json plain = read_report("simulate 1f1b --pp 4 -m 16" + flags);
  EXPECT_EQ(plans["plans"][0]["step_ns"], step["makespan_ns"]);
  EXPECT_GT(step["makespan_ns"], plain["makespan_ns"]);
}

TEST(ModelCommands, TakeALayoutForEveryWave) {
  const Json step = read_report(
      "simulate hanayo --pp 2 --vpp 4 -m 4 --model llama3-8b --layout "
      "'Et*4|t*4|t*4|t*4|t*4|t*4|t*4|t*4L'");
  EXPECT_EQ(step["vpp"], 4);
}

TEST(ModelCommands, RecomputeOnce) {
  expect_says("convert 1f1b --pp 2 -m 2 --recompute full --to text | " + program_path() +
                  " simulate - --model llama3-8b --recompute full",
              2, "recomputes in R's of its own; leave --recompute out");
}

// 405 billion parameters on 4 devices cannot fit 80 GiB; 8 billion do.
TEST(ModelCommands, WarnOfWhatDoesNotFitAndSayWhatWouldHelp) {
  expect_says("simulate 1f1b --pp 4 -m 4 --model llama3-405b", 0,
              "4 of 4 ranks do not fit: rank 0 needs");
  expect_says("simulate 1f1b --pp 4 -m 4 --model llama3-405b", 0,
              "the states alone are too large: more --pp or --tp");
  expect_says("simulate gpipe --pp 4 -m 64 --model llama3-8b", 0,
              "; for smaller activations: --recompute full, a schedule that holds fewer");
  const std::string fits = run_with_messages("simulate 1f1b --pp 4 -m 4 --model llama3-8b").output;
  EXPECT_EQ(fits.find("do not fit"), std::string::npos) << fits;
}

TEST(ModelCommands, ReportWhatTheMemoryIsMadeOf) {
  const Json report = read_report("simulate 1f1b --pp 4 -m 8 --model llama3-8b --tp 2");
  const Json& model = report["model"];
  EXPECT_EQ(model["layers_per_stage"].size(), 4u);
  std::int64_t layers = 0;
  for (const Json& stage : model["layers_per_stage"]) layers += stage.get<std::int64_t>();
  EXPECT_EQ(layers, 32);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    std::int64_t sum = 0;
    for (const auto& [part, bytes] : model["memory_bytes"][rank].items())
      sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, report["ranks"][rank]["peak_memory_bytes"].get<std::int64_t>());
  }
  EXPECT_EQ(report["made_with"]["costs"].get<std::string>().rfind("llama3-8b on h100, tp 2", 0),
            0u);
  EXPECT_EQ(report["made_with"]["optimizer"], "barrier");
}

TEST(ModelCommands, SayWhichNetworkTheyWereMadeWith) {
  const Json report = read_report("simulate 1f1b --pp 4 -m 8 --network bytes=1MiB,link=400");
  const auto costs = report["made_with"]["costs"].get<std::string>();
  EXPECT_NE(costs.find("network bytes=1048576B,link=400"), std::string::npos) << costs;
}

// The step of a plan is the step that simulate shows: the same ops, the same end.
TEST(ModelCommands, PlanAndSimulateTheSameStep) {
  const Json plans = read_report(
      "plan --model llama3-8b --gpu h100 --gpus 8 --global-batch-size 16 --pp 4 --vpp 1 --tp 1 "
      "--micro-batch-size 1 --recompute none --schedules 1f1b,zb-h1");
  ASSERT_EQ(plans["plans"].size(), 2u);
  for (const Json& plan : plans["plans"]) {
    const Json report = read_report("simulate " + plan["schedule"].get<std::string>() +
                                    " --pp 4 -m 8 --dp 2 --model llama3-8b --gpu h100");
    EXPECT_EQ(plan["step_ns"], report["makespan_ns"]);
    EXPECT_EQ(plan["bubble_ratio"], report["bubble"]["ratio"]);
    std::int64_t peak = 0;
    for (const Json& rank : report["ranks"])
      peak = std::max(peak, rank["peak_memory_bytes"].get<std::int64_t>());
    EXPECT_EQ(plan["peak_memory_bytes"], peak);
  }
}

// PipeDream's rank 0 of 4 holds 4 versions of its weights, 1F1B only one.
TEST(ModelCommands, HoldEveryVersionOfTheWeights) {
  const std::string flags = " --pp 4 -m 8 --model llama3-8b --gradients fp32";
  const Json one = read_report("simulate 1f1b" + flags)["model"]["memory_bytes"][0];
  const Json four = read_report("simulate pipedream" + flags)["model"]["memory_bytes"][0];
  EXPECT_EQ(four["weights"], 4 * one["weights"].get<std::int64_t>());
  EXPECT_EQ(four["optimizer"], one["optimizer"]);
  expect_says("simulate pipedream" + flags, 0, "1 of 4 ranks does not fit");
}

// Schedules that search for an order see the time of each message.
TEST(ModelCommands, NetworksAreSeenBeforeTheOrder) {
  for (const char* schedule : {"zb-auto", "zb-1p", "zb-2p", "v-min", "v-half", "v-auto", "1f1b-v"})
    expect_says(std::string("simulate ") + schedule + " --pp 2 -m 4 --network bytes=64MiB,link=400",
                0, "makespan");
}

TEST(ModelCommands, EndAStepAsTheFlagsSay) {
  const std::string model = "simulate 1f1b --pp 4 -m 4 --dp 16 --model llama3-8b ";
  const auto makespan = [&](const std::string& flags) {
    return read_report(model + flags)["makespan_ns"].get<std::int64_t>();
  };
  EXPECT_LT(makespan("--optimizer none"), makespan(""));
  EXPECT_EQ(makespan("--optimizer barrier --grad-reduction overlap"), makespan(""));
  EXPECT_LE(makespan("--optimizer local --grad-reduction overlap"), makespan(""));
  EXPECT_GT(makespan("--optimizer barrier --grad-reduction serial"), makespan(""));
}

TEST(ModelCommands, TakeTheBatchOfAStepInsteadOfMicrobatches) {
  const std::string model = "simulate 1f1b --pp 4 --model llama3-8b --dp 8 --micro-batch-size 2 ";
  EXPECT_EQ(read_report(model + "--global-batch-size 256")["microbatches"], 16);  // 256 / (8 x 2)
  expect_says(model + "--global-batch-size 250", 2,
              "250 is not a multiple of --dp 8 times --micro-batch-size 2; give 240, or -m");
  expect_says(model + "--global-batch-size 256 -m 8", 2, "makes 16 micro-batches, not 8");
}

TEST(ModelCommands, PriceCopiesByTheLinksOfTheDevice) {
  // A micro-batch leaves about 10 GB in 8 layers: 0.2 s over the 52 GB/s of PCI Express 5, 20 s
  // over half a gigabyte per second, beside ops of 0.3 s.
  const std::string model = "simulate 1f1b --pp 4 -m 8 --model llama3-8b --optimizer none ";
  const auto makespan = [&](const std::string& flags) {
    return read_report(model + flags)["makespan_ns"].get<std::int64_t>();
  };
  const std::string file = ::testing::TempDir() + "slow_host.json";
  std::ofstream(file) << R"({"like": "h100", "host": {"latency": 0, "gigabytes_per_second": 0.5}})";
  const std::string slow = "--gpu " + file;
  EXPECT_GT(makespan("--offload 1 " + slow), 2 * makespan("--offload 1"));
  EXPECT_EQ(makespan(slow), makespan(""));
}

/// Schedules that search by costs have them priced for the chunks that they will have.
TEST(ModelCommands, AreRefusedOrTimedForEveryNumberOfChunks) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (!def.reads_costs || def.splits_output_layer) continue;
    const std::string plain = "simulate " + def.name + " --pp 4 -m 8 --model llama3-8b";
    const Json expected = read_report(plain);
    for (const int chunks : {1, 2, 3, 4}) {
      const std::string flags = plain + " --vpp " + std::to_string(chunks);
      if (def.implied_chunks == chunks)
        EXPECT_EQ(read_report(flags), expected) << flags;
      else
        expect_says(flags, 2, "per rank; leave --vpp out");
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests
