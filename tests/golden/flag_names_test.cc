// Tests what the program says about flags by the names that the user gave.
#include <gtest/gtest.h>

#include "tests/support/outcome.h"

namespace bubblescope::tests {
namespace {

TEST(FlagNames, ExplainsFlagsOfFrameworks) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp 4 -m 8 --lr 1e-4 --num-layers 32 --fp8 --lr=2", 2,
       "no flag is called '--num-layers' (the model sets it: give '--model' a name or a "
       "config.json "
       "(Hugging Face)), '--fp8' (here it is '--precision fp8'), '--lr' ('bubblescope "
       "simulate --help' shows"},
      {"simulate 1f1b --pp 4 -m 8 --a --b1 --c --d --e --f1 --h1", 2,
       "no flag is called '--a', '--b1', '--c', '--d', '--e', '--f1', '--h1' ("},
      {"simulate 1f1b --pp 4 -m 8 --validation.seq_len 2048", 2,
       "no flag is called '--validation.seq_len' ('bubblescope"},
      {"simulate 1f1b --pp 4 -m 8 --bf16=maybe", 2, "no flag is called '--bf16'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --gpu h100 --runtime ddp", 2,
       "no runtime is called 'ddp'; plain PyTorch is closest to 'fsdp', with '--zero 0'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --runtime mindspeed", 2,
       "MindSpeed runs Megatron-LM, which is 'megatron'"},
      {"simulate 1f1b --pp 1 -m 8 --model meta-llama/Llama-3.1-70B-Instruct", 2,
       "no model and no file is called 'meta-llama/Llama-3.1-70B-Instruct'; did you mean "
       "'llama3.1-70b'?"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --data_parallel_shard_degree 8", 2,
       "here it is '--dp', or '--shard-size' beside data_parallel_replicate_degree"},
      {"simulate 1f1b --stages 4 -m 8", 2, "no flag is called '--stages'; here it is '--pp'"},
      {"simulate 1f1b --pp 4 -m 8 --json", 2, "here it is '--format json'"},
      {"simulate 1f1b --pp 4 -m 8 --fwd 10 --bwd 20", 2,
       "no flag is called '--fwd' (here it is '--f'), '--bwd' (here it is '--b')"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --expert_parallel_size 8", 2,
       "no flag is called '--expert_parallel_size'; here it is '--ep'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --lora-rank 8 --fsdp_size 8", 2,
       "'--lora-rank' (adapters (LoRA) and frozen weights are not modelled), '--fsdp_size' (here "
       "it is '--dp'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --runtime llama-factory", 2,
       "no runtime is called 'llama-factory'; plain PyTorch is closest to 'fsdp'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --runtime gpt-neox", 2,
       "no runtime is called 'gpt-neox'; GPT-NeoX runs DeepSpeed, which is 'deepspeed'"},
      {"simulate 1f1b --pp 1 -m 8 --model llama3-8b --gpu mi300", 2,
       "no gpu is called 'mi300'; did you mean 'mi300x'? ('bubblescope list gpus' shows them all; "
       "any "
       "other is a .json file with 'like', one of these, and its own rates)"},
      {"simulate 1f1b --pp 1 -m 8 --model mpt-7b", 2,
       "('bubblescope list models' shows them all; any other is a config.json)"},
      {"simulate 1f1b --pp 4 -m 8 --fsdp=full_shard", 2,
       "bubblescope: --fsdp is true or false, not 'full_shard' ('bubblescope simulate --help'"},
      {"simulate 1f1b --pp 4 -m 8 --noise-seed=x", 2, "--noise-seed is a number, not 'x'"},
      {"check 1f1b --pp 4 -m 8 --fp8", 2,
       "no flag is called '--fp8' ('bubblescope check --help' shows"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

TEST(FlagNames, NamesFlagsAsTheyWereGiven) {
  const OutcomeCase cases[] = {
      {"simulate 1f1b --pp x -m 8", 2, "bubblescope: --pp: 'x' is not"},
      {"simulate 1f1b --pp 4 -m x", 2, "bubblescope: -m: 'x' is not"},
      {"plan --pp 4.5 -m 8", 2, "bubblescope: --pp: '4.5' is not"},
      {"plan --pipeline-model-parallel-size 4.5 -m 8", 2,
       "bubblescope: --pipeline-model-parallel-size: '4.5' is not"},
      {"plan --pp 4 -m 8.5", 2, "bubblescope: -m: '8.5' is not"},
      {"plan --pp 4 -m8.5", 2, "bubblescope: -m: '8.5' is not"},
      {"plan --pp 4 --microbatches=8.5", 2, "bubblescope: --microbatches: '8.5' is not"},
      {"simulate 1f1b --pp 4 -m 8 --model llama3-8b --recompute x", 2,
       "bubblescope: --recompute: 'x' is not"},
  };
  for (const OutcomeCase& test : cases) expect_outcome(test);
}

}  // namespace
}  // namespace bubblescope::tests
