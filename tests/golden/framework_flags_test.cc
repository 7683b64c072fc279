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

void expect_says(const std::string& arguments, int status, const std::string& says) {
  const CommandOutcome outcome = run_with_messages(arguments);
  EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
}

void expect_refusal(const std::string& arguments, const std::string& says) {
  expect_says(arguments, 2, says);
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
  const std::string step = " --recompute selective --pp 4 -m 8 --model llama3-8b";
  EXPECT_EQ(run_command("simulate --recompute-modules mlp layernorm 1f1b" + step).output,
            run_command("simulate 1f1b --recompute-modules mlp,layernorm" + step).output);
  expect_refusal(kStep + selective + "mlp layers", "one word too many: 'layers'");
}

// Megatron-LM looks at them only where there is a granularity (transformer_config.py).
TEST(FrameworkFlags, OfRecomputationAreSaidToNeedAGranularity) {
  expect_says(kStep + "--recompute-method uniform --recompute-num-layers 1", 0,
              "--recompute full is assumed");
  expect_says(kStep + "--recompute-modules core_attn", 0, "--recompute selective is assumed");
  expect_same_step("--recompute-modules core_attn",
                   "--recompute selective --recompute-modules core_attn");
}

// Transformers' flags have values, as the keys of configurations in yaml have.
TEST(FrameworkFlags, MayBeGivenAsTrueOrFalse) {
  expect_same_step("--bf16 True --sequence_parallel true --use-distributed-optimizer=true", "");
  expect_same_step("--fp16 False --bf16=true --overlap-param-gather false", "");
  expect_same_step("--sequence_parallel false", "--no-sequence-parallel");
  expect_same_step("--use_flash_attn False", "--save-scores");
  expect_same_step("--overlap-grad-reduce false", "--grad-reduction serial");
  expect_same_step("--use-distributed-optimizer=False", "--zero 0");
  expect_refusal(kStep + "--sequence-parallel false --sequence_parallel",
                 "--sequence-parallel false and --sequence_parallel contradict each other");
}

TEST(FrameworkFlags, DivideDataRanksIntoGroups) {
  const std::string step = "--cp 2 --use-distributed-optimizer ";
  expect_same_step(step + "--num-distributed-optimizer-instances 2", step + "--shard-size 2");
  expect_same_step(step + "--num-distributed-optimizer-instances 1", step);
  expect_refusal(kStep + "--num-distributed-optimizer-instances 3",
                 "--num-distributed-optimizer-instances 3 does not divide --dp times --cp (2)");
  expect_refusal(kStep + "--num-distributed-optimizer-instances 2 --shard-size 2",
                 "contradict each other");
}

TEST(FrameworkFlags, OfTensorOverlapNeedARuntimeThatHasIt) {
  expect_same_step("--runtime nemo --tp-comm-overlap", "--runtime nemo");
  expect_same_step("--tp-comm-overlap --tensor-exposed 0.5", "--tensor-exposed 0.5");
  expect_refusal(kStep + "--tp-comm-overlap",
                 "--tp-comm-overlap: --runtime megatron hides none of the tensor ranks'");
}

// One run names all that a script has to lose.
TEST(FrameworkFlags, ThatAreUnknownAreAllNamed) {
  std::string flags = "--optimizer adam --save checkpoints/ --main-grads-dtype bf16 ";
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g"})
    flags.append("--unknown-").append(name).append(" 1 ");
  const CommandOutcome outcome = run_with_messages(kStep + flags);
  EXPECT_EQ(outcome.status, 2);
  for (const char* const says :
       {"--optimizer adam: here", "--save checkpoints/: here", "'--unknown-a'", "'--unknown-g'",
        "'--main-grads-dtype' (here it is '--gradients')"})
    EXPECT_NE(outcome.output.find(says), std::string::npos) << says << "\n" << outcome.output;
  expect_refusal(kStep + "--moe-enable-deepep --activation_checkpoint.mode full",
                 "'--activation_checkpoint.mode' (here it is '--recompute')");
  expect_refusal("plan --model llama3-8b --gpus 8 --recompute-modules mlp",
                 "here '--recompute modules' chooses them");
}

TEST(FrameworkFlags, WithoutAModelAreNamedAsGiven) {
  const std::string step = "simulate 1f1b --pp 4 -m 8 ";
  for (const char* const flag : {"--bf16", "--use-distributed-optimizer", "--sequence-parallel",
                                 "--tensor_model_parallel_size=2", "--keep-scores"}) {
    const std::string name =
        std::string(flag) == "--keep-scores" ? "--save-scores" : std::string(flag);
    expect_says(step + flag, 0, name.substr(0, name.find('=')) + " changes nothing without");
  }
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
    expect_says(arguments, 1, says);
  };
  expect_problem(kStep + "--first-layers 9",
                 "71 layers cannot be divided evenly into the 7 inner stages; choose other "
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
  const auto expect_assumed = [&](const std::string& flags, const std::string& says) {
    EXPECT_NE(messages_of(model + flags).find(note + says + "\n"), std::string::npos)
        << messages_of(model + flags);
  };
  expect_assumed("", "it off unless given: --bf16");
  expect_assumed("--tensor-model-parallel-size 8 --dp 2 --bf16",
                 "them off unless given: "
                 "--sequence-parallel (off with --no-sequence-parallel), "
                 "--use-distributed-optimizer (off with --zero 0), --overlap-grad-reduce and "
                 "--overlap-param-gather (off with --grad-reduction serial)");
  expect_assumed("--dp 2 --bf16 --use-distributed-optimizer --overlap-grad-reduce",
                 "it off unless given: --overlap-param-gather (off with --grad-reduction serial)");
  const std::string layers = "bubblescope: layers are divided by their times, while Megatron-LM";
  EXPECT_NE(messages_of(model).find(layers), std::string::npos);
  EXPECT_EQ(messages_of(model + "--first-layers 10").find(layers), std::string::npos);
  // All are given, or the command line is not in Megatron-LM's words.
  for (const char* flags :
       {"--tensor-model-parallel-size 8 --dp 2 --bf16 --sequence-parallel --overlap-grad-reduce "
        "--overlap-param-gather --use-distributed-optimizer",
        "--tp 8 --dp 2 --precision fp8 --no-sequence-parallel --zero 0 --grad-reduction serial"})
    EXPECT_EQ(messages_of(model + flags).find(note), std::string::npos) << flags;
  EXPECT_EQ(messages_of("simulate 1f1b --model llama3-70b -m 16 --pp 8 --tp 8").find(note),
            std::string::npos);
}

// A note of an overlap is right where the step takes longer without it, and only there.
TEST(FrameworkFlags, OfMegatronAssumeNoOverlapThatARuntimeLacks) {
  const std::string step =
      "1f1b --model llama3-8b --gpu a100 --dp 8 --tensor-model-parallel-size 2 "
      "--pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 64 --bf16 "
      "--sequence-parallel --runtime ";
  for (const char* const runtime :
       {"megatron", "megatron-2021", "nemo", "deepspeed", "megatron --zero 2",
        "megatron --zero 2 --fsdp", "megatron --zero 1 --fsdp", "megatron --zero 0 --fsdp",
        "fsdp --zero 3"}) {
    const std::string command = "simulate " + step + runtime;
    const bool is_noted =
        messages_of(command).find("(off with --grad-reduction serial)") != std::string::npos;
    const bool is_hidden = read_report(command)["makespan_ns"] <
                           read_report(command + " --grad-reduction serial")["makespan_ns"];
    EXPECT_EQ(is_noted, is_hidden) << runtime;
    const bool is_idle = messages_of(command + " --grad-reduction serial")
                             .find("--grad-reduction changes nothing") != std::string::npos;
    EXPECT_NE(is_idle, is_hidden) << runtime;
  }
  // The step of a search ends with its gradients.
  EXPECT_EQ(messages_of("search --pp 2 -m 2 --effort 1000 --model llama3-8b --dp 2 "
                        "--tensor-model-parallel-size 2")
                .find("--grad-reduction serial"),
            std::string::npos);
}

// With bf16 Megatron-LM adds up gradients in 32 bits, with fp16 in 16, unless it is told otherwise
// (arguments.py).
TEST(FrameworkFlags, OfMegatronSayWhatItsGradientsNeed) {
  const std::string job =
      "simulate 1f1b --model gpt3-175b --gpu a100-40 --dp 1 --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size 48 --micro-batch-size 1 --global-batch-size 1536 "
      "--sequence-parallel --layout 'E(tt|)*47ttL' ";
  const std::string asked = messages_of(job + "--bf16 --gradients fp32");
  const std::string::size_type end = asked.find(" too much");
  ASSERT_NE(end, std::string::npos) << asked;
  const std::string::size_type begin = asked.rfind(", ", end) + 2;
  const std::string lacks = "lacks " + asked.substr(begin, end - begin);
  const std::string said = messages_of(job + "--bf16");
  EXPECT_NE(said.find("Megatron-LM has 32-bit gradients unless --grad-reduce-in-bf16 is given"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(lacks), std::string::npos) << lacks << "\n" << said;
  for (const char* const flags :
       {"--bf16 --grad-reduce-in-bf16", "--fp16", "--bf16 --gradients bf16",
        "--bf16 --accumulate-allreduce-grads-in-fp32"})
    EXPECT_EQ(messages_of(job + flags).find("Megatron-LM has "), std::string::npos) << flags;
  const std::string small =
      "simulate 1f1b --model llama3-8b --pipeline-model-parallel-size 4 -m 8 ";
  EXPECT_NE(messages_of(small + "--fp16").find("Megatron-LM has 16-bit gradients with --fp16"),
            std::string::npos);
  EXPECT_EQ(messages_of(small + "--bf16").find("Megatron-LM has 32-bit"), std::string::npos);
}

// Errors about what no model here has use the words that were given, and suggest no other flag.
TEST(FrameworkFlags, OfWhatIsNotModelledSaySo) {
  expect_refusal(kStep + "--precision nvfp4", "GEMMs in 4 bits are not modelled");
  expect_refusal(kStep + "--precision MXFP4", "GEMMs in 4 bits are not modelled");
  expect_refusal(kStep + "--precision mxfp8", "'fp8' stands for all recipes of 8 bits");
  expect_refusal(kStep + "--precision fp32", "GEMMs in 32 bits are not modelled");
  expect_refusal(kStep + "--precision bf61", "did you mean 'bf16'");
  expect_refusal(kStep + "--fp4-format e2m1", "GEMMs in 4 bits are not modelled");
  expect_refusal(kStep + "--ulysses-degree 8", "all-to-alls (Ulysses) are not modelled");
  expect_refusal(kStep + "--peft-scheme lora", "adapters (LoRA) and frozen weights");
}

}  // namespace
}  // namespace bubblescope::tests
