// Answers that must not mislead: what is compared, what was left out, which flag is meant.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class TruthfulAnswers : public TemporaryFolder {
 protected:
  static void expect_says(const std::string& arguments, int status, const std::string& says) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
  }
};

// A list that took every word would take the schedule, too.
TEST_F(TruthfulAnswers, FlagsTakeOneWordEach) {
  for (const char* flag : {"--fail-if 'bubble_ratio>0.9'", "--slow rank=1,factor=2",
                           "--inject rank=1,delay=5", "--assume tensor_exposed=0.5"})
    EXPECT_EQ(run_command(std::string("simulate ") + flag + " 1f1b --pp 4 -m 8").status, 0) << flag;
  expect_says("simulate --fail-if 'bubble_ratio>0.9' --fail-if 'bubble_ratio>0.1' 1f1b --pp 4 -m 8",
              1, "failed: bubble_ratio>0.1");
}

// A full backward of 20 ms beside halves of 1 ms made zb-h1 look 2.6 times as fast as 1f1b.
TEST_F(TruthfulAnswers, HalvesOfABackwardAddUpToIt) {
  const auto report = [](const std::string& arguments) {
    const CommandOutcome outcome = run_with_messages(arguments + " --format json");
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  };
  const std::string compare = "compare 1f1b,zb-h1,dualpipev --pp 4 -m 8 --f 10 ";
  const std::string whole = report(compare + "--b 20 --i 10 --w 10");
  EXPECT_EQ(report(compare + "--b 20"), whole);
  EXPECT_EQ(report(compare + "--i 10 --b 20"), whole);
  EXPECT_EQ(report(compare + "--b 20 --w 10"), whole);
  EXPECT_EQ(report("simulate zb-h1 --pp 2 -m 4 --b 5ns"),
            report("simulate zb-h1 --pp 2 -m 4 --b 5ns --i 2ns --w 3ns"));
  const std::string plan = "plan --pp 4 -m 8 --schedules zb-h1 --total-f 40 --total-b 80 ";
  EXPECT_EQ(run_command(plan + "--format csv").output,
            run_command(plan + "--total-i 40 --total-w 40 --format csv").output);
}

// A slow step was called as the plain one was.
TEST_F(TruthfulAnswers, StepsSayUnderWhichConditionsTheyWereSimulated) {
  std::ofstream(path("arrivals")) << "0 1 2";
  const std::string step = "simulate zb-h1 --pp 2 -m 3 ";
  expect_says(step + "--slow rank=1,factor=2 --inject rank=1,delay=5", 0,
              "3 micro-batches, simulated with inject rank=1,delay=5ms, slow rank=1,factor=2\n");
  expect_says(step + "--policy ready:backward", 0, "simulated with policy ready:backward\n");
  expect_says(step + "--policy fixed", 0, "3 micro-batches, simulated\n");
  const auto made_with = [](const std::string& command) {
    return read_report(command)["made_with"];
  };
  const Json made = made_with(step + "--policy ready:path --arrivals " + path("arrivals") +
                              " --slow rank=0,factor=1.5 --slow rank=1,factor=2");
  EXPECT_EQ(made["policy"], "ready:path");
  EXPECT_EQ(made["arrivals"], path("arrivals"));
  EXPECT_EQ(made["slow"], "rank=0,factor=1.5 rank=1,factor=2");
  EXPECT_FALSE(made.contains("inject"));
  run_command(step + "--inject rank=1,op=1F0,delay=5us --save " + path("saved.json"));
  std::ifstream saved(path("saved.json"));
  EXPECT_EQ(Json::parse(saved)["made_with"]["inject"], "rank=1,op=1F0,delay=5us");
}

// The tie is at 2 ms; chunks and slices round the first gain to 2.000002 ms.
TEST_F(TruthfulAnswers, BreakEvenValuesHaveTheDigitsThatAreKnown) {
  const std::string plan = "plan --pp 4 -m 8 --schedules zb-h1,interleaved";
  expect_says(plan, 0, "while --i   < 2 ms ");
  expect_says(plan, 0, "while --w   > 666.67 us ");
  expect_says(plan + " --format json", 0, "\"at_ns\":2000002");
  expect_says("simulate 1f1b --pp 2 -m 3 --jitter 5% --seeds 1", 0, "noise        1 step: p50");
}

// One note for m = 15, where there is no step, spoke of its bubble.
TEST_F(TruthfulAnswers, NotesOnBubblesAreOfStepsThatAre) {
  expect_says("compare 1f1b,hanayo --pp 8 -m 12", 0,
              "on 8 ranks hanayo has at most the bubble of 1f1b with up to 8 micro-batches, and "
              "with 16 where forwards and backwards differ by a factor of 2 at most; with 12, 1f1b "
              "may have less\n");
  for (const char* quiet : {"hanayo --pp 8 -m 8", "hanayo --pp 8 -m 16", "chimera --pp 2 -m 12",
                            "chimera --pp 4 -m 15"})
    EXPECT_EQ(run_with_messages(std::string("simulate ") + quiet).output.find("may have less"),
              std::string::npos)
        << quiet;
  expect_says("simulate hanayo --pp 8 -m 16 --b 3", 0, "may have less");
}

// PyTorch 2.15 ends with "Got 2 FORWARD microbatches for stage 0, expected 4" for chimera.
TEST_F(TruthfulAnswers, PlansPromiseWhatConvertDoes) {
  const std::string promise = "hands it to PyTorch";
  for (const char* name : {"bpipe", "chimera", "chimera-halving", "chimera-doubling", "gems",
                           "hanayo", "seq1f1b", "terapipe", "v-half", "zb-h2"}) {
    const std::string plan =
        run_command("plan --pp 4 -m 8 --schedules " + std::string(name)).output;
    const CommandOutcome converted =
        run_with_messages("convert " + std::string(name) + " --pp 4 -m 8 --to pytorch-csv");
    const bool runs = converted.status == 0 &&
                      converted.output.find("PyTorch's runtime refuses") == std::string::npos;
    const bool by_name = plan.find("#1 in ") != std::string::npos;
    EXPECT_TRUE(by_name || (plan.find(promise) != std::string::npos) == runs) << plan;
  }
  expect_says("convert chimera --pp 4 -m 4 --to pytorch-csv", 0,
              "2 of 4 micro-batches through stage 0, and PyTorch's runtime refuses");
}

TEST_F(TruthfulAnswers, PlansSayWhatTheyLeaveOut) {
  const std::string plan =
      "plan --model llama3.1-8b --gpus 8 --global-batch-size 8 --schedules 1f1b ";
  expect_says(plan + "--runtime torchtitan", 0,
              "not tried, and may be faster: --cp 1,2,4 (sequences split over ranks), --recompute");
  const std::string all = run_with_messages(plan + "--cp 1 --recompute none").output;
  EXPECT_EQ(all.find("not tried"), std::string::npos) << all;
  expect_says(
      "plan --model mixtral-8x7b --gpus 64 --pp 4 --tp 1 --ep 8 --global-batch-size 128 "
      "--schedules dualpipev",
      0, "--overlap fused (pairs that hide the experts' messages)");
}

// Micro-batches of 4 samples are the largest that are tried unasked, and 8 of a small model are
// faster: fewer kernels are launched for the same samples. A batch of 32 has 4 for each of 8 ranks.
TEST_F(TruthfulAnswers, PlansSayThatLargerMicroBatchesMayBeFaster) {
  const std::string plan =
      "plan --model gpt3-125m --gpus 8 --schedules 1f1b --tp 1 --pp 1 --recompute none --top 1 ";
  const std::string note = "--micro-batch-size 1,2,4,8,16 (the best plan has the largest";
  expect_says(plan + "--global-batch-size 512", 0, note);
  for (const char* quiet :
       {"--global-batch-size 512 --micro-batch-size 4", "--global-batch-size 32"})
    EXPECT_EQ(run_with_messages(plan + quiet).output.find(note), std::string::npos) << quiet;
  const auto step_of = [&](const std::string& size) {
    const std::string json =
        run_command(plan + "--global-batch-size 512 --format json " + "--micro-batch-size " + size)
            .output;
    return std::stoll(json.substr(json.find("\"step_ns\":") + 10));
  };
  EXPECT_LT(step_of("8"), step_of("4"));
}

// Both have a bubble of 3 of 11 ms: 8 micro-batches of 3 ms and 9 ms, 33 ms in all, on 4 ranks; 16
// and 21 ms, 69 ms, on 8. Per micro-batch that is 4.125 and 4.3125 ms: +4.55 %, and not +109 %.
TEST_F(TruthfulAnswers, ComparedShapesAreRankedPerMicrobatch) {
  expect_says("compare 1f1b --shapes 4x8,8x16", 0, "+4.55%");
  expect_says("compare 1f1b --shapes 4x8,8x16", 0, "time per micro-batch");
  const std::string alike = run_command("compare 1f1b,gpipe --pp 4 -m 8").output;
  EXPECT_EQ(alike.find("per mb"), std::string::npos);
}

TEST_F(TruthfulAnswers, ComparisonsAsCsvSayWhatFits) {
  const std::string rows =
      run_command("compare 1f1b,gpipe --pp 4 -m 64 --model llama3-8b --format csv").output;
  EXPECT_NE(
      rows.find("microbatches,peak_memory_bytes,head_room_bytes,fits,gradients,vs_best\n\"1f1b\","),
      std::string::npos)
      << rows;
  EXPECT_NE(rows.find(",true,fp32,0\n\"gpipe\","), std::string::npos) << rows;
  EXPECT_NE(rows.find(",false,fp32,"), std::string::npos) << rows;
}

// A row has the largest gradients with which it fits: those of zb-v take 2 bytes less of Adam.
TEST_F(TruthfulAnswers, GradientsThatWereShrunkToFitAreNamed) {
  const std::string run = "1f1b,zb-v,gpipe --pp 2 --dp 2 -m 16 --model llama3-8b";
  expect_says("simulate 1f1b --pp 2 --dp 2 -m 16 --model llama3-8b", 0,
              "memory       fits with 16-bit gradients: ");
  const std::string rows = run_command("compare " + run + " --format csv").output;
  EXPECT_NE(rows.find(",true,bf16,"), std::string::npos) << rows;
  EXPECT_NE(rows.find(",true,bf16-lean,"), std::string::npos) << rows;
  EXPECT_NE(rows.find(",false,fp32,"), std::string::npos) << rows;
  expect_says("compare " + run, 0, "gradients\n");
  const std::string alike = run_command("compare 1f1b,gpipe --pp 4 -m 8 --model llama3-8b").output;
  EXPECT_EQ(alike.find("gradients"), std::string::npos) << alike;
}

TEST_F(TruthfulAnswers, ForwardsAloneHaveNoGradientsToShard) {
  const std::string text =
      run_command("simulate forward-only --pp 4 -m 8 --model llama3-8b").output;
  EXPECT_EQ(text.find("gradients;"), std::string::npos) << text;
  EXPECT_EQ(text.find("ZeRO"), std::string::npos) << text;
}

TEST_F(TruthfulAnswers, FrameworksRunAPlanOnlyWithWhatTheyHave) {
  const std::string plan =
      "plan --model mixtral-8x7b --gpus 64 --pp 4 --tp 1 --ep 8 --global-batch-size 128 "
      "--schedules interleaved --moe-overlap";
  expect_says(plan, 0, "#1 in megatron;");
  expect_says(plan + " --format megatron", 0, " --overlap-moe-expert-parallel-comm");
  expect_says(plan + " --format megatron", 0, " --use-distributed-optimizer");
}

TEST_F(TruthfulAnswers, AnOverlapThatHidesNothingIsSaid) {
  const std::string run = "simulate interleaved --vpp 2 --pp 4 -m 8 --dp 8 --moe-overlap --model ";
  expect_says(run + "llama3-8b", 0, "hides nothing here: the model has no experts");
  expect_says(run + "mixtral-8x7b --ep 8", 0, "hides nothing here, because ops have no parts");
  const std::string hides = run_command(run + "mixtral-8x7b --ep 8 --parts megatron").output;
  EXPECT_EQ(hides.find("hides nothing"), std::string::npos) << hides;
  expect_says(
      "plan --model mixtral-8x7b --gpus 64 --pp 4 --tp 1 --ep 8 --global-batch-size 128 "
      "--schedules interleaved --moe-overlap",
      0, "--parts megatron (which lets --moe-overlap hide messages)");
}

/// The sum of the times in a line, in ms: "warmup +234.4 us, 0.1 ms less of all else".
double add_up(const std::string& line) {
  static const std::regex time(R"(([0-9.]+) (s|ms|us|ns)( less)?\b)");
  const std::map<std::string, double> unit{{"s", 1e3}, {"ms", 1}, {"us", 1e-3}, {"ns", 1e-6}};
  double sum = 0;
  for (std::sregex_iterator at(line.begin(), line.end(), time), end; at != end; ++at)
    sum += std::stod((*at)[1]) * unit.at((*at)[2]) * ((*at)[3].matched ? -1 : 1);
  return sum;
}

TEST_F(TruthfulAnswers, CausesOfALossAddUpToIt) {
  const std::string plan =
      "plan --pp 4,8 -m 8,16,32 --f 10 --b 20 --i 11 --w 9 --p2p 0.5 --schedules "
      "1f1b,gpipe,zb-h1,zb-v,interleaved";
  const Json plans = read_report(plan)["plans"];
  const auto per_sample = [&](std::size_t at) {
    return plans[at]["step_ns"].get<double>() / plans[at]["microbatches"].get<double>() / 1e6;
  };
  const std::string text = run_command(plan).output;
  static const std::regex loss(R"(\n  \S+ +#([0-9]+) +\+[0-9.]+ % (.*))");
  int losers = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), loss), end; at != end; ++at, ++losers) {
    const double lost = per_sample(std::stoul((*at)[1]) - 1) - per_sample(0);
    EXPECT_NEAR(add_up((*at)[2]), lost, 0.002 * per_sample(0)) << at->str();
  }
  EXPECT_EQ(losers, 4);
  EXPECT_NE(text.find(" less of all else"), std::string::npos) << text;
}

TEST_F(TruthfulAnswers, PlansOfTheParetoFrontThatAreNotShownAreCounted) {
  const std::string plan = "plan --model llama3-8b --gpus 16 --global-batch-size 64 ";
  expect_says(plan + "--top 1", 0, "more on the Pareto front: --top N shows more");
  EXPECT_EQ(run_command(plan + "--top 90").output.find("more on the Pareto"), std::string::npos);
}

TEST_F(TruthfulAnswers, MegatronIsToldWhatThePredictionAssumes) {
  const std::string plan =
      "plan --model llama3-8b --gpus 16 --global-batch-size 64 --pp 4 --tp 2 --schedules 1f1b "
      "--format megatron ";
  expect_says(plan, 0,
              " --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce "
              "--overlap-param-gather\n");
  expect_says(plan + "--grad-reduction serial", 0,
              " --sequence-parallel --use-distributed-optimizer\n");
  expect_says(plan + "--zero 0", 0, " --sequence-parallel --overlap-grad-reduce\n");
  expect_says(plan + "--runtime nemo", 0, " --overlap-param-gather --tp-comm-overlap\n");
  expect_says(plan + "--runtime nemo", 0, "also have the fused loss and the token dispatcher");
  expect_says(plan + "--shard-size 1", 0, " --num-distributed-optimizer-instances 2 ");
  EXPECT_EQ(run_command(plan + "--no-sequence-parallel --zero 0").output.find("--sequence"),
            std::string::npos);
  expect_says(plan + "--gradients bf16", 0, " --grad-reduce-in-bf16");
  expect_says(plan + "--zero 2", 0, "also have ZeRO stage 2 (Megatron-FSDP)");
}

// They say all but the schedule, the model, the devices and the ranks of data.
TEST_F(TruthfulAnswers, ArgumentsForMegatronAreReadBack) {
  const std::string job = " --model llama3-8b --gpu h100";
  for (const std::string flags : {"1f1b", "1f1b --gradients bf16 --recompute full",
                                  "1f1b --zero 1 --micro-batch-size 2", "interleaved --vpp 2"}) {
    const std::string plan =
        "plan --gpus 16 --global-batch-size 64 --pp 4 --tp 2" + job + " --schedules " + flags;
    const Json best = read_report(plan)["plans"][0];
    const std::string written = run_command(plan + " --format megatron --top 1").output;
    std::string words = written.substr(written.find('\n') + 1);
    words.pop_back();  // the end of the line
    static const std::regex ends(" --decoder-[a-z]+-pipeline-num-layers [0-9]+");
    if (std::regex_search(words, ends))
      words = std::regex_replace(words, ends, "") + " --layout '" +
              best["layout"].get<std::string>() + "'";
    const std::string step = "simulate " + best["schedule"].get<std::string>() + job + " --dp 2 ";
    EXPECT_EQ(read_report(step + words)["makespan_ns"], best["step_ns"]) << words;
  }
}

TEST_F(TruthfulAnswers, ErrorsOfFlagsThatRepeatNameThem) {
  expect_says("simulate 1f1b --pp 2 -m 2 --slow 1:1.5", 2,
              "--slow: '1:1.5' names no key; write rank=...,factor=...");
  expect_says("simulate 1f1b --pp 2 -m 2 --inject foo", 2, "--inject: 'foo' is not a fault");
}

TEST_F(TruthfulAnswers, IntervalsAreOfStepsLikePublishedOnes) {
  const std::string run = " --pp 4 -m 8 --model llama3-8b";
  const auto interval = [&](const std::string& words) {
    return read_report("simulate " + words + run)["interval"];
  };
  EXPECT_TRUE(interval("1f1b").is_object());
  EXPECT_TRUE(interval("1f1b --optimizer barrier --grad-reduction overlap").is_object());
  EXPECT_TRUE(interval("1f1b --optimizer barrier --grad-reduction serial").is_object());
  for (const char* words :
       {"1f1b --inject rank=1,delay=5", "1f1b --slow rank=1,factor=2", "1f1b --optimizer none",
        "pipedream", "1f1b --p2p-mode rendezvous", "1f1b --offload 0.5", "1f1b --policy ready"})
    EXPECT_TRUE(interval(words).is_null()) << words;
}

TEST_F(TruthfulAnswers, ChecksReportAllSchedules) {
  std::ofstream(path("ok.csv")) << "0F0,0B0\n";
  std::ofstream(path("bad.csv")) << "0F0,xyz\n";
  std::ofstream(path("dup.csv")) << "0F0,0F0,0B0\n";
  const std::string all = path("ok.csv") + " " + path("bad.csv") + " " + path("dup.csv");
  expect_says("check " + all, 2, "bad.csv:1:2");
  expect_says("check " + all, 2, "dup.csv: not legal");
  const CommandOutcome json = run_command("check " + all + " --format json");
  EXPECT_EQ(json.status, 2);
  const Json list = Json::parse(json.output);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_TRUE(list[1]["legal"].is_null());
  EXPECT_FALSE(list[2]["legal"].get<bool>());
}

TEST_F(TruthfulAnswers, SizesWithoutUnitsAreNoticed) {
  std::ofstream(path("gpu.json")) << R"({"like": "h100", "memory": 80})";
  expect_says(
      "simulate 1f1b --pp 4 -m 8 --model llama3-8b --gpu " + path("gpu.json"), 2,
      "/memory: is 80 bytes; write the memory of a device with its unit, such as \"80GiB\"");
  expect_says("simulate 1f1b --pp 4 -m 8 --offload 2", 2, "one from 0 to 1, or 0% to 100%");
  EXPECT_EQ(run_command("simulate 1f1b --pp 4 -m 8 --offload 50% --copy 1").output,
            run_command("simulate 1f1b --pp 4 -m 8 --offload 0.5 --copy 1").output);
  expect_says("--max-input 16 simulate 1f1b --pp 4 -m 8", 0, "--max-input 16 is 16 bytes");
}

// A schedule that no device can hold is not a choice, however fast.
TEST_F(TruthfulAnswers, TheBestOfAComparisonFits) {
  const std::string capped = run_command("compare 1f1b,zb-h2 --pp 4 -m 8 --cap 4").output;
  EXPECT_TRUE(std::regex_search(capped, std::regex("1f1b .* \\+0\\.00% "))) << capped;
  EXPECT_TRUE(std::regex_search(capped, std::regex("zb-h2 .* -[0-9.]+% "))) << capped;
  const std::string model = "compare zb-v,dualpipe --pp 8 -m 32 --model llama3-70b --tp 4";
  const std::string table = run_command(model).output;
  EXPECT_TRUE(std::regex_search(table, std::regex("zb-v .*\\+0\\.00% .* yes "))) << table;
  EXPECT_TRUE(std::regex_search(table, std::regex("dualpipe .* -[0-9.]+% .* NO "))) << table;
}

// Halves of no time are times, too: they were taken for missing ones, and a longer step for the
// shortest.
TEST_F(TruthfulAnswers, HalvesThatTakeNoTimeAreSearched) {
  const std::string costs = " --pp 2 -m 1 --f 3 --i 0 --w 0 --b 1 --p2p 1";
  expect_says("simulate zb-h1" + costs, 0, "makespan     8 ms");
  expect_says("search" + costs, 0, "makespan 8 ms, proved optimal");
}

TEST_F(TruthfulAnswers, RemediesShrinkTheMemory) {
  const std::string model = "simulate 1f1b --pp 4 -m 8 --model llama3-70b --tp 2 --dp 1";
  expect_says(model + " --zero 0", 0, "--zero 1 with more --dp");
  expect_says(model + " --zero 1", 0, "more --dp (which shards the optimizer's states)");
  // W keeps what I computes again.
  const std::string split =
      run_with_messages(
          "simulate zb-h2 --pp 4 -m 32 --model qwen2.5-72b --tp 4 --dp 8 --zero 2 "
          "--micro-batch-size 2")
          .output;
  EXPECT_NE(split.find("do not fit"), std::string::npos) << split;
  EXPECT_EQ(split.find("--recompute full"), std::string::npos) << split;
}

// Two reports whose times differ say why.
TEST_F(TruthfulAnswers, CostsNameWhatIsUnusual) {
  const std::string model = "simulate 1f1b --pp 4 -m 8 --model llama3-8b --tp 2 --gpu h100 ";
  std::set<std::string> costs;
  const auto line_of = [&](const std::string& flags) {
    const std::string report = run_command(model + flags).output;
    const std::size_t at = report.find("\ncosts ");
    return report.substr(at, report.find('\n', at + 1) - at);
  };
  const std::vector<std::string> flags{"",
                                       "--precision fp8",
                                       "--slowdown 2",
                                       "--runtime nemo",
                                       "--save-scores",
                                       "--full-attention",
                                       "--first-layers 8",
                                       "--assume sustained_teraflops=300",
                                       "--tensor-exposed 0.1"};
  for (const std::string& flag : flags) costs.insert(line_of(flag));
  EXPECT_EQ(costs.size(), flags.size());
}

TEST_F(TruthfulAnswers, NoPublishedRunHasUnequalMicrobatches) {
  std::ofstream(path("lengths")) << "512\n8192\n2048\n4096\n";
  expect_says("simulate 1f1b --pp 4 --model llama3-8b --gpu h100 --format json --lengths " +
                  path("lengths"),
              0, "has micro-batches of several lengths");
}

}  // namespace
}  // namespace bubblescope::tests
