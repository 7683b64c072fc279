// States each default that --help documents, and expects the same report: a flag whose value is
// its default changes nothing, and neither does it change what other flags are taken to be. A flag
// whose help names a default needs a line here.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

/// The default of each flag, without and with a model like those below. "-": the flag is refused
/// there, or its default has no spelling.
constexpr const char* kDefaults = R"(
--accumulation-bytes    -            12
--b                     2            -
--copy                  0            -
--costs-per             rank         rank
--cp                    -            1
--embedding-layers      -            -
--ep                    -            1
--epilogue              -            -
--etp                   -            8
--f                     1            -
--gpu                   -            -
--gpus-per-node         -            8
--grad-reduction        none         overlap
--gradients             -            -
--head-layers           -            -
--i                     1ms          -
--in-flight             -            -
--jitter-shape          lognormal    lognormal
--layout-costs          0,1,1,1      0,1,1,1
--lowering              asap         asap
--mem                   1,0,-1       1,0,-1
--message-exposed       -            1
--micro-batch-size      -            1,2,4
--noise-seed            1            1
--norm                  0            -
--objective             makespan     makespan
--optimizer             none         barrier
--optimizer-step        0            -
--output-layer          0            -
--overlap               atomic       atomic
--p2p                   0            -
--p2p-mode              dataflow     dataflow
--placement             linear       linear
--precision             -            bf16
--r                     1            -
--r-selective           0.027        -
--ranks-per-host-link   1            1
--recompute             -            none,modules,full
--recompute-method      -            -
--recompute-modules     -            -
--reduce-grad           0            -
--release               w            w
--reserve-memory        -            0.5GiB
--runtime               -            -
--saved-fraction        0,0.3        0,0.3
--schedules             auto         all
--seed                  1            1
--seeds                 1000         1000
--send-budget           -            -
--seq-length            -            2048
--shard-size            -            8
--slowdown              -            1
--split                 -            balanced,even,ends,fitted
--tensor-exposed        -            1
--threads               -            -
--time-limit            10s          -
--timeout               -            -
--top                   -            -
--total-b               -            -
--unshard               0            -
--unshard-lookahead     -            none
--w                     1ms          -
--zero                  -            0
)";

struct Defaults {
  std::string plain;
  std::string modelled;
};

const std::map<std::string, Defaults>& defaults() {
  static const std::map<std::string, Defaults> known = [] {
    std::map<std::string, Defaults> read;
    std::istringstream words(kDefaults);
    std::string flag;
    Defaults values;
    while (words >> flag >> values.plain >> values.modelled) read[flag] = values;
    return read;
  }();
  return known;
}

/// The flags whose help names a default.
std::vector<std::string> find_flags(const std::string& command) {
  std::string help = run_command(command + " --help").output;
  help = std::regex_replace(help, std::regex(R"(\n {20,})"), " ");
  std::vector<std::string> flags;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  --") && line.find("default") != std::string::npos)
      flags.push_back(line.substr(2, line.find_first_of(", ", 2) - 2));
  return flags;
}

/// A report without the commands of plans, which have what was given.
Json without_commands(const std::string& report) {
  Json parsed = Json::parse(report);
  if (parsed.contains("plans"))
    for (Json& plan : parsed["plans"]) plan.erase("command");
  return parsed;
}

/// States the defaults of a command one by one, except for flags that `base` gives already.
void expect_same_reports(const std::string& base) {
  const bool is_modelled = base.find("--model") != std::string::npos;
  const CommandOutcome plain = run_command(base + " --format json");
  ASSERT_EQ(plain.status, 0) << base;
  int stated = 0;
  for (const std::string& flag : find_flags(base.substr(0, base.find(' ')))) {
    const auto known = defaults().find(flag);
    if (known == defaults().end()) {
      ADD_FAILURE() << flag << " has no default here";
      continue;
    }
    const std::string& value = is_modelled ? known->second.modelled : known->second.plain;
    if (value == "-" || base.find(flag + " ") != std::string::npos) continue;
    const std::string words = std::string(" ").append(flag).append(" ").append(value);
    EXPECT_EQ(without_commands(run_command(base + words + " --format json").output),
              without_commands(plain.output))
        << base << words;
    ++stated;
  }
  EXPECT_GT(stated, 10) << base;
}

TEST(StatedDefaults, ChangeNoStep) {
  expect_same_reports("simulate 1f1b --pp 4 -m 8 --p2p 0.3 --f 1 --b 2");
  expect_same_reports("simulate zb-h1 --pp 4 -m 8");
  expect_same_reports("compare 1f1b,gpipe --pp 4 -m 8");
}

// Those of --gpu and --runtime, whose values decide other defaults.
TEST(StatedDefaults, ChangeNoDevice) {
  const std::string step = "simulate 1f1b --pp 4 -m 8 --dp 8 --model llama3-8b --format json ";
  EXPECT_EQ(run_command(step + "--gpu h100 --runtime megatron --zero 1").output,
            run_command(step).output);
}

// A node has 8 devices, the runtime is not the usual one, and the published runs give an interval.
TEST(StatedDefaults, ChangeNoStepOfAModel) {
  const std::string model = " --model gpt3-175b --gpu a100 --runtime megatron-2021 --tp 8";
  expect_same_reports("simulate 1f1b --pp 4 -m 8 --dp 8" + model);
  expect_same_reports("compare 1f1b,gpipe --pp 4 -m 8 --dp 8" + model);
  expect_same_reports("search --pp 16 -m 4 --effort 3000 --dp 8" + model);
}

TEST(StatedDefaults, ChangeNoPlan) {
  expect_same_reports("plan --pp 4 -m 8 --b 2");  // --b follows --i and --w only where not given
  expect_same_reports(
      "plan --model gpt3-175b --gpu a100 --runtime megatron-2021 --tp 8 --gpus 512 "
      "--global-batch-size 64 --pp 8");
}

// Each flag fills in its own default, whatever the other one says.
TEST(StatedDefaults, ChangeNoOtherChoiceOfTheStepsEnd) {
  const std::string step =
      "simulate 1f1b --pp 4 -m 8 --dp 8 --model llama3-8b --layout 'Et*8|t*8|t*8|t*8L' "
      "--format json ";
  for (const char* optimizer : {"none", "local", "post-validation"})
    EXPECT_EQ(run_command(step + "--optimizer " + optimizer).output,
              run_command(step + "--grad-reduction overlap --optimizer " + optimizer).output);
  for (const char* reduction : {"none", "serial"})
    EXPECT_EQ(run_command(step + "--grad-reduction " + reduction).output,
              run_command(step + "--optimizer barrier --grad-reduction " + reduction).output);
}

}  // namespace
}  // namespace bubblescope::tests
