// Command lines in the words of training frameworks: what is read, what contradicts, what is
// assumed.
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

const std::string kStep = "simulate 1f1b --model llama3-70b --pp 8 --tp 8 -m 16 --dp 2 ";

void expect_refusal(const std::string& arguments, const std::string& says) {
  const CommandOutcome outcome = run_with_messages(arguments);
  EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
}

/// Expects that a step with the first flags is the step with the second.
void expect_same_step(const std::string& theirs, const std::string& ours) {
  const CommandOutcome outcome = run_command(kStep + theirs);
  EXPECT_EQ(outcome.status, 0) << theirs;
  EXPECT_EQ(outcome.output, run_command(kStep + ours).output) << theirs;
}

TEST(FrameworkFlags, ThatContradictAreNamedTogether) {
  const auto expect_contradiction = [](const std::string& flags, const std::string& pair) {
    expect_refusal(kStep + flags, pair + " contradict each other; leave one of them out");
  };
  expect_contradiction("--sequence-parallel --no-sequence-parallel",
                       "--sequence-parallel and --no-sequence-parallel");
  expect_contradiction("--no-sequence-parallel --sequence_parallel",
                       "--no-sequence-parallel and --sequence_parallel");
  expect_contradiction("--use-flash-attn --save-scores", "--use-flash-attn and --save-scores");
  expect_contradiction("--overlap-grad-reduce --no-overlap-grad-reduce",
                       "--overlap-grad-reduce and --no-overlap-grad-reduce");
  expect_contradiction("--overlap-param-gather --grad-reduction serial",
                       "--overlap-param-gather and --grad-reduction serial");
  expect_contradiction("--bf16 --fp16", "--bf16 and --fp16");
  expect_contradiction("--zero=0 --use-distributed-optimizer",
                       "--zero=0 and --use-distributed-optimizer");
  expect_contradiction("--zero-stage 2 --use-distributed-optimizer",
                       "--zero-stage 2 and --use-distributed-optimizer");
  expect_contradiction("--bf16 --precision fp16", "--bf16 and --precision fp16");
}

TEST(FrameworkFlags, ThatSayTheSameMayStandTogether) {
  expect_same_step("--zero 1 --use-distributed-optimizer --zero_stage 1 --bf16 --precision=bf16",
                   "--zero 1");
  expect_same_step("--overlap-grad-reduce --overlap-param-gather --sequence-parallel", "");
  expect_same_step("--parallelism.tensor_parallel_degree 8", "");
  // Without a model, gradients are reduced at no time unless told.
  const std::string step = "simulate 1f1b --pp 4 -m 8 --reduce-grad 5 ";
  const std::string overlapped = run_command(step + "--grad-reduction overlap").output;
  EXPECT_NE(overlapped, run_command(step).output);
  EXPECT_EQ(run_command(step + "--overlap-param-gather --overlap-grad-reduce").output, overlapped);
  EXPECT_EQ(run_command(step + "--overlap-grad-reduce --overlap-param-gather").output, overlapped);
}

// In Megatron-LM the weights have 16 bits, and their GEMMs the format of --fp8-format.
TEST(FrameworkFlags, OfEightBitGemmsStandBesideTheSixteenBitsOfWeights) {
  for (const char* flags :
       {"--bf16 --fp8-format hybrid", "--fp8-format=e4m3 --bf16", "--fp16 --fp8-format hybrid",
        "--bf16 --precision fp8", "--fp8-hybrid --bf16"})
    expect_same_step(flags, "--precision fp8");
  expect_refusal(kStep + "--fp8-format nvfp4",
                 "no flag is called '--fp8-format'; here it is '--precision fp8'");
}

TEST(FrameworkFlags, TakeModulesBetweenBlanks) {
  const std::string selective = "--recompute-granularity selective --recompute-modules ";
  expect_same_step(selective + "mlp layernorm --zero 1", selective + "mlp,layernorm --zero 1");
  EXPECT_EQ(run_command("simulate --recompute-modules mlp layernorm 1f1b --pp 4 -m 8 --model "
                        "llama3-8b")
                .output,
            run_command("simulate 1f1b --recompute-modules mlp,layernorm --pp 4 -m 8 --model "
                        "llama3-8b")
                .output);
  expect_refusal(kStep + selective + "mlp layers", "one word too many: 'layers'");
}

TEST(FrameworkFlags, OfOtherMeaningAreNotMisread) {
  expect_refusal(kStep + "--profile --zero 1",
                 "--profile needs a value, a framework whose rules hold; in Megatron-LM it records "
                 "a profile");
  expect_refusal(kStep + "--save checkpoints/", "--save checkpoints/: here it writes the step");
  expect_refusal(kStep + "--use-distributed-optimizer --save checkpoints",
                 "in Megatron-LM it is the folder of checkpoints");
  expect_refusal(kStep + "--optimizer adam", "in Megatron-LM it is the optimizer of the training");
  expect_refusal("plan --pp 4 -m 8 --split 969,30,1", "in Megatron-LM it divides the data");
  expect_refusal(kStep + "--offload", "in DeepSpeed's examples it offloads the optimizer");
  const std::string file = ::testing::TempDir() + "step_of_flags.json";
  EXPECT_EQ(run_command(kStep + "--use-distributed-optimizer --save " + file).status, 0);
  EXPECT_EQ(run_command(kStep + "--save " + ::testing::TempDir() + "step_of_flags").status, 0);
}

// 80 layers without the 9 and 11 of the ends are 60 on 6 ranks.
TEST(FrameworkFlags, GiveTheEndsTheirLayers) {
  const std::string ends =
      "--decoder-first-pipeline-num-layers 9 --decoder-last-pipeline-num-layers 11 ";
  const std::string layout = "--layout 'Et*9|t*10|t*10|t*10|t*10|t*10|t*10|t*11L' ";
  const nlohmann::json given = read_report(kStep + ends);
  const nlohmann::json expected = read_report(kStep + layout);
  EXPECT_EQ(given["makespan_ns"], expected["makespan_ns"]);
  EXPECT_EQ(given["model"], expected["model"]);
  const std::string both = "compare 1f1b,gpipe --model llama3-70b --pp 8 --tp 8 -m 16 ";
  const nlohmann::json reports = read_report(both + ends)["reports"];
  for (std::size_t at = 0; at < reports.size(); ++at)
    EXPECT_EQ(reports[at]["makespan_ns"], read_report(both + layout)["reports"][at]["makespan_ns"]);
  const std::string plan =
      "plan --model llama3-70b --gpus 64 --global-batch-size 32 --tp 8 --pp 8 --schedules 1f1b "
      "--micro-batch-size 1 --recompute full --format megatron ";
  const CommandOutcome planned = run_command(plan + ends);
  EXPECT_EQ(planned.status, 0);
  EXPECT_NE(planned.output.find(ends.substr(0, ends.size() - 1)), std::string::npos)
      << planned.output;
  expect_refusal(plan + ends + "--split even", "leave --split out");
  expect_refusal(kStep + ends + layout, "--layout has the layers of every stage; leave");
}

TEST(FrameworkFlags, OfEndsAreRefusedWhereTheyDivideNoLayers) {
  const auto expect_problem = [](const std::string& arguments, const std::string& says) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(says), std::string::npos) << outcome.output;
  };
  expect_problem(kStep + "--first-layers 9",
                 "71 layers do not divide evenly into the 7 inner stages; choose other "
                 "--first-layers or --last-layers");
  expect_problem("simulate zb-v --model llama3-8b --pp 4 -m 8 --first-layers 8",
                 "zb-v does not place its stages in a loop");
}

std::string messages_of(const std::string& arguments) {
  return run_with_messages(arguments).output;
}

// Training frameworks find the replicas from the number of devices, which a step does not have.
TEST(FrameworkFlags, OfABatchSayThatItHasOnePipeline) {
  const std::string step = "simulate 1f1b --pp 4 --global-batch-size 16 ";
  const std::string note =
      "bubblescope: --dp 1 is assumed: the whole batch of 16 samples goes through one pipeline; "
      "--dp divides it\n";
  for (const char* flags : {"", "--model llama3-8b", "--train_batch_size 16"})
    EXPECT_EQ(messages_of(step + flags).rfind(note, 0), 0U) << flags;
  for (const char* flags : {"--dp 1", "--data-parallel-size 2", "-m 16"})
    EXPECT_EQ(messages_of(step + flags).find("is assumed"), std::string::npos) << flags;
}

TEST(FrameworkFlags, OfMegatronSayWhatIsAssumedWithoutThem) {
  const std::string model =
      "simulate 1f1b --model llama3-70b -m 16 --pipeline-model-parallel-size 8 ";
  const std::string note = "bubblescope: assumed, though Megatron-LM has ";
  EXPECT_EQ(messages_of(model).rfind(note + "it off unless given: --bf16\n", 0), 0U);
  EXPECT_EQ(messages_of(model + "--tensor-model-parallel-size 8 --dp 2 --bf16")
                .rfind(note + "them off unless given: "
                              "--sequence-parallel (off with --no-sequence-parallel), "
                              "--use-distributed-optimizer (off with --zero 0), "
                              "--overlap-grad-reduce (off with --grad-reduction serial)\n",
                       0),
            0U);
  const std::string layers = "bubblescope: layers are divided by their times, while Megatron-LM";
  EXPECT_NE(messages_of(model).find(layers), std::string::npos);
  EXPECT_EQ(messages_of(model + "--first-layers 10").find(layers), std::string::npos);
  // All are given, or the command line is not in Megatron-LM's words.
  for (const char* flags :
       {"--tensor-model-parallel-size 8 --dp 2 --bf16 --sequence-parallel --overlap-grad-reduce "
        "--use-distributed-optimizer",
        "--tp 8 --dp 2 --precision fp8 --no-sequence-parallel --zero 0 --grad-reduction serial"})
    EXPECT_EQ(messages_of(model + flags).find(note), std::string::npos) << flags;
  EXPECT_EQ(messages_of("simulate 1f1b --model llama3-70b -m 16 --pp 8 --tp 8").find(note),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
