// Gives each flag of --help to each command, and expects that something that is printed changes: a
// flag has an effect, is refused, or is said to change nothing. A new flag needs a value here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

/// A value other than the default, or nothing for flags that take none; @ is a folder for files.
constexpr const char* kValues = R"(--account-for-embedding
--account-for-loss
--accumulation-bytes 20
--all-modes
--all-ranks
--arrivals @/arrivals
--assume half_size=60
--attention flash
--b 3
--backend cpu
--bandwidth 10MB/s
--cap 2
--copy 1
--costs @/none.json
--costs-out @/fitted.json
--costs-per chunk
--cp 2
--dot @/step.dot
--dp 2
--each
--effort 30000
--embedding-layers 7
--ep 2
--epilogue none
--etp 1
--explain
--f 3
--fail-if 'bubble_ratio>0.01'
--first-layers 1
--format json
--fsdp
--full-attention
--global-batch-size 16
--gpu a100
--gpus 16
--gpus-per-node 2
--grad-reduction serial
--gradients bf16
--graph
--head-layers 12
--hidden-size 64
--html @/step.html
--i 3
--in-flight 2
--inject rank=1,delay=5
--jitter 5%
--jitter-shape gaussian
--last-layers 1
--layers Et*4L
--layers-per-stage 2
--layout 'Et|t|tt|ttL'
--layout-costs 1,2,1,1
--length-jitter 5%
--lengths @/lengths
--levels 2x2
--lose rank=1
--lowering deferred
--mem 2,0,-2
--memory 1MB
--merge @/none
--message-exposed 0.1
--method blocks
--micro-batch-size 2
--microbatch-group-size 2
--model llama3.1-8b
--moe-overlap
--network bytes=64MB,link=100,per-node=2,between=10
--no-sequence-parallel
--no-verify
--noise-seed 3
--norm 1
--num-attention-heads 2
--objective period
--offload 0.5
--optimizer local
--optimizer-step 1
--output @/step.json
--output-layer 1
--overlap fused
--p2p 1
--p2p-jitter 5%
--p2p-mode rendezvous
--parameter-copies 8
--parts dualpipe
--perfetto @/step.pb
--placement v
--policy ready
--pp 2
--precision fp8
--profile deepseek
--r 3
--r-selective 2
--rank-jitter 5%
--ranks-per-host-link 4
--recompute full
--recompute-method block
--recompute-modules core_attn,layernorm
--recompute-num-layers 2
--reduce-grad 1
--release i
--repeat-layers 2
--replicas 2,1,1,1
--reserve-memory 4GiB
--results @/results
--resume @/journal
--rules @/none.json
--runtime nemo
--save @/step.json
--save-scores
--saved-fraction 0.5
--schedule gpipe
--schedules gpipe
--seed 4
--seeds 10
--send-budget 1
--sensitivity
--seq-length 2048
--shapes 3x6
--shard-size 1
--shard 1/2
--share 2
--slices 2
--slow rank=1,factor=2
--slowdown 1.1
--split even
--split-b 0.5
--stages 3
--step-jitter 5%
--steps 3
--straggler probability=0.1,factor=2
--straight
--suggest
--svg @/step.svg
--tensor-exposed 0.1
--threads 1
--time-limit 3
--timeline @/step.csv
--timeout 50
--to dot
--top 1
--total-b 5
--total-f 5
--total-i 5
--total-w 5
--tp 2
--trace @/step.json
--training-optimizer sgd
--transfers
--try gpipe
--try-out @/best.json
--unshard 1
--unshard-lookahead 1
--vocab-size 128
--vpp 3
--w 3
--warmup 2
--weight-grad-share 0.3
--wide
--work sleep
--workers 3
--zero 3
-m 7)";

const std::map<std::string, std::string>& values() {
  static const std::map<std::string, std::string> known = [] {
    std::map<std::string, std::string> read;
    std::istringstream lines(kValues);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = std::min(line.find(' '), line.size());
      read[line.substr(0, end)] = line.substr(std::min(end + 1, line.size()));
    }
    return read;
  }();
  return known;
}

class IgnoredFlags : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    std::filesystem::current_path(folder_);  // --shard writes its journal where it runs
    std::ofstream arrivals(path("arrivals"));
    std::ofstream lengths(path("lengths"));
    for (int at = 0; at < 8; ++at) {
      arrivals << 40 * at << "\n";
      lengths << 2048 << "\n";
    }
    // Six layers, of which one takes as long as eight others.
    std::ofstream layers(path("layers.json"));
    layers
        << R"({"format": "bubblescope-costs/1", "message": {"bytes": "1MiB", "bandwidth_gbps": 100},
                  "stages": [)";
    for (int at = 0; at < 6; ++at)
      layers << (at == 0 ? "" : ", ") << R"({"backward": 2, "weight_bytes": "256KiB", "forward": )"
             << (at == 1 ? 16 : 1) << R"(, "activation_bytes": {"saved": "8MiB"}})";
    layers << "]}";
  }

  void TearDown() override {
    std::filesystem::current_path(started_in_);
    TemporaryFolder::TearDown();
  }

  /// The first name of each flag in --help, whose examples and statuses come last.
  static std::set<std::string> flags_of(const std::string& command) {
    std::istringstream help(run_command(command + " --help").output);
    std::set<std::string> flags;
    for (std::string line; std::getline(help, line) && !line.starts_with("example: ");)
      if (line.starts_with("  -") && !line.starts_with("  -h,"))
        flags.insert(line.substr(2, line.find_first_of(", ", 2) - 2));
    return flags;
  }

  /// Values that replace those of all commands.
  using OwnValues = std::map<std::string, std::string>;

  std::string words_of(const std::string& flag, const OwnValues& own) const {
    const auto found = values().find(flag == "-o" ? "--output" : flag);
    if (found == values().end()) {
      ADD_FAILURE() << flag << " has no value here";
      return "";
    }
    std::string value = own.contains(flag) ? own.at(flag) : found->second;
    if (value.starts_with("@")) value = path(value.substr(2));
    return " " + flag + (value.empty() ? "" : " ") + value;
  }

  /// Expects that each flag of the command in `base` changes what is printed, except for those that
  /// make no difference here.
  void expect_heard(const std::string& base, const std::set<std::string>& without_difference,
                    const OwnValues& own = {}) const {
    const CommandOutcome plain = run_with_messages(base);
    EXPECT_EQ(plain.status, 0) << base << plain.output;
    for (const std::string& flag : flags_of(base.substr(0, base.find(' ')))) {
      const std::size_t at = base.find(flag + " ");
      std::string rest = base;
      if (at != std::string::npos) rest.erase(at, rest.find(' ', at + flag.size() + 1) - at);
      const std::string words = words_of(flag, own);
      const CommandOutcome outcome = run_with_messages(rest + words);
      const bool same = outcome.status == plain.status && outcome.output == plain.output;
      EXPECT_EQ(same, without_difference.contains(flag)) << base << words << "\n" << outcome.output;
      const bool is_denied =
          outcome.output.find(" " + flag + " changes nothing: ") != std::string::npos;
      if (is_denied) expect_same_step(rest + words, rest);
    }
  }

  /// The times and the memory of a report, and how far off they may be. Ops that take no time may
  /// be on the critical path, and slack before one that a rank waits for is less.
  static std::string find_step(const std::string& command) {
    static const std::regex times(
        R"re("(makespan_ns|max_span_ns|ideal_ns|busy_ns|idle_ns|step_ns)":[^,}]+)re");
    static const std::regex others(
        R"re("(low_ns|high_ns|interval|peak_memory_bytes|head_room_bytes)":[^,}]+)re");
    const std::string report = run_command(command + " --format json").output;
    std::string step;
    for (const std::regex& known : {times, others})
      for (std::sregex_iterator at(report.begin(), report.end(), known), end; at != end; ++at)
        step += at->str() + "\n";
    return step;
  }

  /// Expects that a flag that is said to change nothing changes nothing.
  static void expect_same_step(const std::string& command, const std::string& plain) {
    EXPECT_EQ(find_step(command), find_step(plain)) << command;
  }

  const std::filesystem::path started_in_ = std::filesystem::current_path();
};

TEST_F(IgnoredFlags, OfSimulateAreNamed) {
  expect_heard("simulate 1f1b --pp 4 -m 8 --p2p 0.3", {"--all-ranks", "--wide"});
}

// Flags of costs are refused beside a model. Where the model, the device or the runtime makes no
// difference, notes say so.
TEST_F(IgnoredFlags, OfModelsAreNamed) {
  const std::string step = "simulate 1f1b --pp 4 -m 8 --model llama3-8b --gpu h100 ";
  // The group of all copies of states is the default: here that of one rank.
  expect_heard(step, {"--all-ranks", "--shard-size", "--wide"}, {{"--model", "llama2-7b"}});
  expect_heard(step + "--tp 2 --dp 4 --layout 'Et*8|t*8|t*8|t*8L'", {"--all-ranks", "--wide"},
               {{"--model", "llama2-7b"}, {"--tp", "4"}, {"--dp", "8"}, {"--shard-size", "2"}});
}

TEST_F(IgnoredFlags, OfCompareAreNamed) {
  // A rank of these schedules never waits for a send.
  expect_heard("compare 1f1b,gpipe --pp 4 -m 8 --p2p 0.3", {"--wide", "--send-budget"});
}

// The flags without a difference are checked, and leave the verdict as it is.
TEST_F(IgnoredFlags, OfCheckAreNamed) {
  expect_heard("check 1f1b --pp 4 -m 8 --cap 9",
               {"--all-modes", "--fsdp", "--layout", "--mem", "--p2p-mode", "--release",
                "--saved-fraction", "-m"});
}

// A layout gives the chunks of a rank, and 1F1B has one in any case.
TEST_F(IgnoredFlags, OfConvertAreNamed) {
  expect_heard("convert 1f1b --pp 4 -m 8 --to text", {"--layout"});
}

// Threads, journals and widths leave the plan as it is.
TEST_F(IgnoredFlags, OfPlanAreNamed) {
  expect_heard("plan --schedules 1f1b,interleaved --p2p 0.3", {"--threads", "--resume", "--wide"},
               {{"--pp", "2"}});
  expect_heard(
      "plan --schedules interleaved,1f1b --model mixtral-8x7b --gpu h100 --gpus 32 "
      "--global-batch-size 64 --pp 4",
      {"--threads", "--wide"}, {{"--recompute", "none"}, {"--gpus", "64"}});
}

// Other efforts and seeds find the same schedule here.
TEST_F(IgnoredFlags, OfSearchAreNamed) {
  expect_heard("search --pp 2 -m 4 --effort 30000 --p2p 0.3", {"--effort", "--seed"},
               {{"--pp", "3"}, {"--effort", "20000"}});
}

// The bandwidth is checked, and no link is the bottleneck.
TEST_F(IgnoredFlags, OfPartitionAreNamed) {
  const std::string layers = "partition " + path("layers.json");
  expect_heard(layers + " --stages 4", {"--bandwidth"},
               {{"--bandwidth", "1GB/s"}, {"--method", "megatron"}, {"-m", "2"}});
  expect_heard(layers + " --workers 4 --bandwidth 50MB/s", {});
}

TEST_F(IgnoredFlags, OfAnalyzeAreNamed) {
  run_command("simulate 1f1b --pp 4 -m 8 --p2p 0.3 --save " + path("saved.json"));
  expect_heard("analyze " + path("saved.json"), {"--all-ranks"});
}

// The modes and all that changes no order are checked, and leave the verdict as it is.
TEST_F(IgnoredFlags, OfFilesAreNamed) {
  const std::string file = path("order.json");
  run_command("convert 1f1b --pp 4 -m 8 --to native -o " + file);
  expect_heard("simulate " + file + " --p2p 0.3", {"--all-ranks", "--wide"});
  expect_heard("convert " + file + " --to text", {"--layout"});
}

// Some of the schedules take these flags, and rows do not show which.
TEST_F(IgnoredFlags, OfSomeSchedulesAreNamed) {
  for (const char* command : {"compare gpipe,1f1b,interleaved --pp 4 -m 8",
                              "plan --schedules gpipe,1f1b,interleaved --pp 4 -m 8"})
    EXPECT_NE(run_with_messages(std::string(command) + " --moe-overlap")
                  .output.find("--moe-overlap changes interleaved alone: the other schedules do "
                               "not take it"),
              std::string::npos)
        << command;
  EXPECT_EQ(run_with_messages("compare interleaved --pp 4 -m 8 --moe-overlap")
                .output.find("--moe-overlap changes"),
            std::string::npos);
}

// A flag that is said to change nothing does not choose how micro-batches overlap either.
TEST_F(IgnoredFlags, PartsChangeNoOrderWithoutAModel) {
  const std::string step = "simulate interleaved --pp 4 --vpp 2 -m 8 --moe-overlap";
  EXPECT_EQ(run_command(step + " --parts megatron").output, run_command(step).output);
}

}  // namespace
}  // namespace bubblescope::tests
