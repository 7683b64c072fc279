// The files of --save and --trace give the same report again: members of the json report byte for
// byte, and the text report up to what only a prediction or only a measurement has.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/format.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::ordered_json;

/// Members of a simulated step's report that are not about this step: other steps under noise or
/// with other costs, a loss, and what follows from a model.
const std::set<std::string> kOfPredictions{
    "noise",   "sensitivity",        "loss",        "mfu",  "tokens_per_second_per_gpu",
    "model",   "interval",           "no_interval", "fits", "head_room_bytes",
    "step_ns", "outside_pipeline_ns"};

/// The lines of the text report from the drawing on; before it there is the headline of a model.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class SavedSteps : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write("gap.json", R"("forward": 1, "backward": 2, "op_gap": "30us")");
    write(
        "bytes.json",
        R"("forward": 1, "backward": 2, "weight_bytes": "3MiB", "message": {"bytes": "1MiB", "bandwidth_gbps": 100},
             "activation_bytes": {"saved": "8MiB", "checkpoint": "1MiB"})");
    write("microbatches.json",
          R"("stages": [
               {"forward": {"per_microbatch": [1, 2, 1, 3]}, "backward": 2,
                "activation_bytes": {"saved": {"per_microbatch": ["1MiB", "2MiB", "1MiB", "3MiB"]}}},
               {"forward": 2, "backward": 3, "activation_bytes": {"saved": "2MiB"}}])");
    write("parts.json",
          R"("parts": {
               "forward": [{"name": "attention", "time": 2},
                           {"name": "dispatch", "lane": "expert", "time": 1},
                           {"name": "experts", "time": 1}],
               "backward": [{"name": "experts", "time": 3},
                            {"name": "combine", "lane": "expert", "time": 1}]})");
    traces::write_file(path("arrivals"), "0\n1\n2\n3\n9\n10\n11\n30\n");
  }

  void write(const std::string& name, const std::string& members) const {
    traces::write_file(path(name), R"({"format": "bubblescope-costs/1", )" + members + "}");
  }

  /// Replaces @ by the folder.
  std::string with_folder(std::string flags) const {
    for (std::size_t at = flags.find('@'); at != flags.npos; at = flags.find('@'))
      flags.replace(at, 1, folder_.string());
    return flags;
  }

  void expect_same_reports(const std::string& flags, const std::string& file) const {
    const std::string simulate = "simulate " + with_folder(flags) + " ";
    const std::string exports = (file == "saved.json" ? "--save " : "--trace ") + path(file);
    const Json predicted =
        Json::parse(run_command(simulate + exports + " --format json").output, nullptr, false);
    ASSERT_TRUE(predicted.is_object()) << flags;
    const Json saved =
        Json::parse(run_command("analyze " + path(file) + " --format json").output, nullptr, false);
    ASSERT_TRUE(saved.is_object()) << flags << ", " << file;
    for (const auto& [name, member] : predicted.items())
      if (!kOfPredictions.contains(name)) {
        ASSERT_TRUE(saved.contains(name)) << flags << ", " << file << ": " << name;
        EXPECT_EQ(saved.at(name).dump(), member.dump()) << flags << ", " << file << ": " << name;
      }
    expect_same_text(flags, run_command(simulate).output,
                     run_command("analyze " + path(file)).output);
  }

  /// Every line of the prediction from its costs on is in the report of the file, in this order.
  static void expect_same_text(const std::string& flags, const std::string& predicted,
                               const std::string& saved) {
    const std::vector<std::string> lines = lines_of(saved);
    std::size_t at = 0;
    bool begun = false;
    for (const std::string& line : lines_of(predicted)) {
      begun = begun || line.starts_with("costs ");
      const bool is_forecast = line.starts_with("noise ") || line.starts_with("1 % more of ") ||
                               line.starts_with("first token") || line.starts_with("step ");
      if (!begun || is_forecast) continue;
      if (line.empty()) break;  // the report of the step ends; that of a model may follow
      while (at < lines.size() && lines[at] != line) ++at;
      ASSERT_LT(at, lines.size()) << flags << " lacks: " << line << "\n" << saved;
    }
    EXPECT_TRUE(begun) << flags;
  }
};

TEST_F(SavedSteps, GiveTheSameReportWithEveryFlag) {
  for (const char* flags :
       {"1f1b --pp 4 -m 8",
        "zb-h1 --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --mem 3,-1,-2",
        "zb-v --pp 4 -m 8 --release half",
        "1f1b --pp 4 -m 8 --recompute full --saved-fraction 0.2",
        "interleaved --pp 4 -m 8 --vpp 2 --p2p 0.3 --p2p-mode rendezvous --costs-per chunk",
        "gpipe --pp 4 -m 8 --p2p 0.3 --p2p-mode host-rendezvous --lowering deferred",
        "1f1b --pp 4 -m 8 --p2p 0.2 --network bytes=64MiB,link=100,per-node=2,between=50",
        "dualpipe --pp 4 -m 8 --overlap fused",
        "gpipe --pp 4 -m 8 --offload 0.5,1 --copy 0.2",
        "1f1b --pp 4 -m 8 --send-budget 1 --p2p 0.4",
        "1f1b --pp 4 -m 8 --fsdp --unshard 0.2",
        "1f1b --pp 4 -m 8 --fsdp --unshard 0.2 --unshard-lookahead 1",
        "1f1b --pp 4 -m 8 --optimizer barrier --optimizer-step 2 --norm 0.1",
        "1f1b --pp 4 -m 8 --grad-reduction overlap --reduce-grad 3",
        "pipedream --pp 4 -m 12",
        "pipedream --pp 4 -m 16 --replicas 2,1,1",
        "seq1f1b --pp 4 -m 8 --slices 2",
        "1f1b-vocab --pp 4 -m 8 --output-layer 1",
        "1f1b --pp 4 -m 8 --inject rank=1,slow=1.5",
        "1f1b --pp 4 -m 8 --jitter 3% --seeds 20 --sensitivity",
        "1f1b --pp 4 -m 8 --costs @/gap.json",
        "1f1b --pp 4 -m 8 --costs @/bytes.json",
        "pipedream --pp 4 -m 12 --costs @/bytes.json",
        "1f1b --pp 4 -m 8 --costs @/bytes.json --recompute full --send-budget 2",
        "1f1b --pp 2 -m 4 --costs @/microbatches.json",
        "gpipe --pp 4 -m 8 --costs @/parts.json",
        "1f1b --pp 4 -m 8 --costs @/parts.json --policy ready:backward",
        "1f1b --pp 4 -m 8 --model llama3-8b --gpu h100",
        "interleaved --pp 4 --vpp 2 -m 8 --model llama3-8b --gpu h100 --tp 2 --recompute selective",
        "gpipe --pp 4 -m 8 --mem 2,0,-2"})
    for (const char* file : {"saved.json", "trace.json"}) expect_same_reports(flags, file);
}

// A Chrome trace has no arrivals.
TEST_F(SavedSteps, KeepTheirArrivals) {
  for (const char* schedule : {"1f1b --pp 4 -m 8", "forward-only --pp 4 -m 8"})
    expect_same_reports(std::string(schedule) + " --arrivals @/arrivals", "saved.json");
}

// Every order of parts, on schedules with overlapped pairs and without, for two models.
TEST_F(SavedSteps, KeepTheirParts) {
  for (const char* schedule : {"dualpipev --pp 4 -m 8", "1f1b --pp 4 -m 8", "zb-h1 --pp 4 -m 8",
                               "interleaved --pp 4 --vpp 2 -m 8 --moe-overlap"})
    for (const char* order : {"series", "dualpipe", "megatron", "braid"})
      for (const char* model : {"mixtral-8x7b --ep 8 --dp 8", "deepseek-v2-lite --ep 8 --dp 8"})
        for (const char* file : {"saved.json", "trace.json"})
          expect_same_reports(std::string(schedule) + " --model " + model + " --parts " + order,
                              file);
}

// A file may be damaged: what does not fit the step is refused with its place.
TEST_F(SavedSteps, RefuseFactsThatDoNotFit) {
  run_command("simulate interleaved --pp 4 --vpp 2 -m 8 --costs " + path("parts.json") +
              " --mem 2,0,-2 --save " + path("saved.json"));
  const std::string saved = traces::read_file(path("saved.json"));
  const auto refusal_of = [&](const std::string& from, const std::string& to) {
    std::string damaged = saved;
    const std::size_t at = damaged.find(from);
    EXPECT_NE(at, damaged.npos) << from;
    damaged.replace(at, from.size(), to);
    traces::write_file(path("damaged.json"), damaged);
    const CommandOutcome outcome = run_with_messages("analyze " + path("damaged.json"));
    EXPECT_EQ(outcome.status, 2) << to;
    return outcome.output;
  };
  const auto expect_refusal = [&](const char* from, const char* to, const char* place) {
    EXPECT_NE(refusal_of(from, to).find(place), std::string::npos) << from << " -> " << to;
  };
  expect_refusal("\"unit\":[2000000", "\"unit\":[2000001", "/memory/unit");
  expect_refusal("\"unit_parts\":2", "\"unit_parts\":0", "/memory/unit_parts");
  expect_refusal("\"release\":\"w\"", "\"release\":\"x\"", "/memory/release");
}

}  // namespace
}  // namespace bubblescope::tests
