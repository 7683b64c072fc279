// Gives each flag of --help to each command, and expects that something that is printed changes: a
// flag has an effect, is refused, or is said to change nothing. A new flag needs a value here.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

/// A value other than the default, or nothing for flags that take none; @ is a folder for files.
constexpr const char* kValues = R"(--accumulation-bytes 20
--all-modes
--all-ranks
--arrivals @/arrivals
--assume half_size=60
--attention flash
--b 3
--backend cpu
--cap 2
--copy 1
--costs @/none.json
--costs-per chunk
--cp 2
--dot @/step.dot
--dp 2
--effort 30000
--embedding-layers 7
--ep 2
--epilogue none
--etp 1
--explain
--f 3
--fail-if 'bubble_ratio>0.01'
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
--layers-per-stage 2
--layout 'Et|t|tt|ttL'
--layout-costs 1,2,1,1
--length-jitter 5%
--lengths @/lengths
--lose rank=1
--lowering deferred
--mem 2,0,-2
--merge @/none
--message-exposed 0.1
--micro-batch-size 2
--microbatch-group-size 2
--model llama3.1-8b
--moe-overlap
--network bytes=64MB,link=100,per-node=2,between=10
--no-graph
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
--reduce-grad 1
--release i
--replicas 2,1,1,1
--reserve-memory 4GiB
--results @/results
--resume @/journal
--runtime nemo
--save @/step.json
--save-scores
--saved-fraction 0.5
--schedules gpipe
--seed 4
--seeds 10
--send-budget 1
--sensitivity
--seq-length 2048
--shapes 3x6
--shard 1/2
--share 2
--slices 2
--slow rank=1,factor=2
--slowdown 1.1
--split even
--step-jitter 5%
--steps 3
--straggler probability=0.1,factor=2
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
--unshard 1
--unshard-lookahead 1
--vocab-size 128
--vpp 3
--w 3
--warmup 2
--wide
--work sleep
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
    std::ofstream arrivals(path("arrivals"));
    std::ofstream lengths(path("lengths"));
    for (int at = 0; at < 8; ++at) {
      arrivals << 40 * at << "\n";
      lengths << 2048 << "\n";
    }
  }

  /// The first name of each flag in --help.
  static std::set<std::string> flags_of(const std::string& command) {
    std::istringstream help(run_command(command + " --help").output);
    std::set<std::string> flags;
    for (std::string line; std::getline(help, line);)
      if (line.starts_with("  -") && !line.starts_with("  -h,"))
        flags.insert(line.substr(2, line.find_first_of(", ", 2) - 2));
    return flags;
  }

  std::string words_of(const std::string& flag) const {
    const auto found = values().find(flag == "-o" ? "--output" : flag);
    if (found == values().end()) {
      ADD_FAILURE() << flag << " has no value here";
      return "";
    }
    std::string value = found->second;
    if (value.starts_with("@")) value = path(value.substr(2));
    return " " + flag + (value.empty() ? "" : " ") + value;
  }

  /// Expects that each flag of the command in `base` changes what is printed, except for those that
  /// make no difference here.
  void expect_heard(const std::string& base,
                    const std::set<std::string>& without_difference) const {
    const CommandOutcome plain = run_with_messages(base);
    for (const std::string& flag : flags_of(base.substr(0, base.find(' ')))) {
      const std::size_t at = base.find(flag + " ");
      std::string rest = base;
      if (at != std::string::npos) rest.erase(at, rest.find(' ', at + flag.size() + 1) - at);
      const CommandOutcome outcome = run_with_messages(rest + words_of(flag));
      const bool same = outcome.status == plain.status && outcome.output == plain.output;
      EXPECT_EQ(same, without_difference.contains(flag)) << base << words_of(flag);
    }
  }
};

TEST_F(IgnoredFlags, OfSimulateAreNamed) {
  // Ranks that run what is ready find nothing better than 1F1B's order.
  expect_heard("simulate 1f1b --pp 4 -m 8 --p2p 0.3", {"--all-ranks", "--wide", "--policy"});
}

TEST_F(IgnoredFlags, OfCompareAreNamed) {
  // A rank of these schedules never waits for a send.
  expect_heard("compare 1f1b,gpipe --pp 4 -m 8 --p2p 0.3", {"--wide", "--send-budget"});
}

// The flags without a difference are checked, and leave the verdict as it is.
TEST_F(IgnoredFlags, OfCheckAreNamed) {
  expect_heard("check 1f1b --pp 4 -m 8 --cap 9",
               {"--all-modes", "--fsdp", "--grad-reduction", "--layout", "--mem", "--offload",
                "--optimizer", "--p2p-mode", "--release", "--saved-fraction", "-m"});
}

// A layout gives the chunks of a rank, and 1F1B has one in any case.
TEST_F(IgnoredFlags, OfConvertAreNamed) {
  expect_heard("convert 1f1b --pp 4 -m 8 --to text", {"--layout"});
}

}  // namespace
}  // namespace bubblescope::tests
