// The files of --save and --trace give the same report again: members of the json report byte for
// byte, and every line of the text report after the drawing. Left out is what forecasts other steps
// and what follows from a model; measured steps have lines of their own besides.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::ordered_json;

/// Members of a simulated step's report that are not about this step: other steps under noise or
/// with other costs, a loss, and what follows from a model.
const std::set<std::string> kOfPredictions{
    "noise",   "sensitivity",        "loss",        "mfu",  "tokens_per_second_per_gpu",
    "model",   "interval",           "no_interval", "fits", "head_room_bytes",
    "step_ns", "outside_pipeline_ns"};

/// The beginnings of lines that forecast other steps, likewise.
constexpr const char* kForecasts[] = {"noise ", "1 % more of "};

/// A simulated step's report ends here; the layers and the memory of its model follow.
constexpr const char* kModel = "layers per stage ";

/// All lines but empty ones.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

bool is_forecast(const std::string& line) {
  return std::any_of(std::begin(kForecasts), std::end(kForecasts),
                     [&](const char* begin) { return line.starts_with(begin); });
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
    write("pairs.json",
          R"("parts": {
               "forward": [{"name": "attn", "time": 2},
                           {"name": "dispatch", "lane": "expert", "time": 1},
                           {"name": "mlp", "time": 1}],
               "backward": [{"name": "mlp", "time": 3},
                            {"name": "dispatch", "lane": "expert", "time": 1}],
               "input_grad": [{"name": "mlp", "time": 2}],
               "weight_grad": [{"name": "mlp_w", "time": 1}]},
             "overlapped_pair": {"order": "dualpipe"})");
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

  void save(const std::string& flags) const {
    run_command("simulate " + with_folder(flags) + " --save " + path("saved.json"));
  }

  /// Replaces the first `from` in the saved file: analyze must refuse it, with this in its message.
  void expect_refusal(const std::string& from, const std::string& to,
                      const std::string& message) const {
    std::string damaged = traces::read_file(path("saved.json"));
    const std::size_t at = damaged.find(from);
    ASSERT_NE(at, damaged.npos) << from;
    damaged.replace(at, from.size(), to);
    traces::write_file(path("damaged.json"), damaged);
    const CommandOutcome outcome = run_with_messages("analyze " + path("damaged.json"));
    EXPECT_EQ(outcome.status, 2) << from;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << from << "\n" << outcome.output;
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

  /// Every line of the prediction from its costs on, but forecasts and what a model adds at the
  /// end, is in the report of the file, in this order. Before the costs there are drawings, and the
  /// headline of a model.
  static void expect_same_text(const std::string& flags, const std::string& predicted,
                               const std::string& saved) {
    const std::vector<std::string> lines = lines_of(saved);
    std::size_t at = 0;
    bool begun = false;
    for (const std::string& line : lines_of(predicted)) {
      begun = begun || line.starts_with("costs ");
      if (!begun || is_forecast(line)) continue;
      if (line.starts_with(kModel)) break;
      while (at < lines.size() && lines[at] != line) ++at;
      ASSERT_LT(at, lines.size()) << flags << " lacks: " << line << "\n" << saved;
      ++at;
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
        "pipedream --pp 2 -m 2 --optimizer local --optimizer-step 1",
        "pipedream-2bw --pp 3 -m 12 --optimizer local --optimizer-step 1",
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

// One rank computes one op at a time: idle time would be counted twice.
TEST_F(SavedSteps, OverlappingOpsAreNotTrusted) {
  save("zb-h1 --pp 2 -m 3 --p2p 0.5");
  std::string changed = traces::read_file(path("saved.json"));
  const std::string op = R"([1,"1W2",10500000,11500000)";
  ASSERT_NE(changed.find(op), changed.npos);
  changed.replace(changed.find(op), op.size(), R"([1,"1W2",1000,1001000)");
  traces::write_file(path("changed.json"), changed);
  const std::string text = run_command("analyze " + path("changed.json")).output;
  EXPECT_TRUE(text.starts_with("not trusted: 1W1 and 1W2 of rank 1 overlap by 10.499 ms")) << text;
  EXPECT_EQ(text.find("bubble "), text.npos) << text;
}

// A csv shows when micro-batches arrive, but not what waits for that.
TEST_F(SavedSteps, ACsvLeavesArrivalsOut) {
  run_command(
      with_folder("simulate forward-only --pp 2 -m 8 --arrivals @/arrivals --timeline @/a.csv"));
  const std::string text = run_command("analyze " + path("a.csv")).output;
  EXPECT_NE(text.find("ARRIVE left out"), text.npos) << text;
}

// A rank of which only messages are known would count as idle.
TEST_F(SavedSteps, ARankWithMessagesAloneIsRefused) {
  traces::write_file(path("a.csv"),
                     "rank,lane,op,kind,stage,microbatch,start_ns,end_ns\n"
                     "0,compute,0F0,F,0,0,0,1000\n1,compute,1F0,F,1,0,1000,2000\n"
                     "1,compute,1B0,B,1,0,2000,4000\n2,,1SEND_B0,SEND_B,1,0,4000,4000\n"
                     "0,compute,0B0,B,0,0,4000,6000\n");
  const CommandOutcome outcome = run_with_messages("analyze " + path("a.csv"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("rank 2 has 1SEND_B0 and no op"), std::string::npos)
      << outcome.output;
}

TEST_F(SavedSteps, AreNotOverwrittenByWhatFollowsFromThem) {
  save("1f1b --pp 2 -m 2");
  for (const char* flag : {"--costs-out ", "--save ", "--try gpipe --try-out "}) {
    const CommandOutcome outcome = run_with_messages("analyze " + path("saved.json") + " " + flag +
                                                     folder_.string() + "/./saved.json");
    EXPECT_EQ(outcome.status, 2) << flag;
    EXPECT_NE(outcome.output.find("which is read"), std::string::npos) << outcome.output;
  }
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

// Where what runs beside an op decides its time, means of ops say nothing of the step.
TEST_F(SavedSteps, NameNoCausesWhereOpsHaveNoTimesOfTheirOwn) {
  for (const char* flags : {"1f1b --pp 4 -m 8 --p2p 0.5 --p2p-mode rendezvous",
                            "1f1b --pp 4 -m 8 --p2p 0.5 --send-budget 1",
                            "zb-v --pp 4 -m 8 --network bytes=64MiB,link=400,per-node=2,nic=200",
                            "dualpipe --pp 4 -m 8 --costs @/parts.json"}) {
    save(flags);
    const Json saved = Json::parse(
        run_command("analyze " + path("saved.json") + " --format json").output, nullptr, false);
    ASSERT_TRUE(saved.is_object()) << flags;
    for (const char* member : {"causes", "slowdown", "stragglers"})
      EXPECT_TRUE(saved.at(member).is_null()) << flags << ": " << member;
    EXPECT_NE(saved.at("notes").dump().find("neither causes nor slowdown"), std::string::npos)
        << flags;
    const CommandOutcome fitted =
        run_with_messages("analyze " + path("saved.json") + " --try zb-h1 --split-b 0.5");
    EXPECT_EQ(fitted.status, 1) << flags;
    const CommandOutcome gate =
        run_with_messages("analyze " + path("saved.json") + " --fail-if 'slowdown>1.1'");
    EXPECT_EQ(gate.status, 1) << flags;
    EXPECT_NE(gate.output.find("slowdown is not known of these steps"), std::string::npos) << flags;
    EXPECT_NE(fitted.output.find("no costs can be fitted to this step"), std::string::npos)
        << flags;
  }
}

TEST_F(SavedSteps, LeaveReductionsOutOfCsv) {
  for (const char* flags : {"1f1b --pp 4 -m 8 --grad-reduction overlap --reduce-grad 3",
                            "1f1b --pp 4 -m 8 --optimizer barrier --optimizer-step 3",
                            "1f1b --pp 4 -m 8 --fsdp --unshard 0.2"}) {
    run_command("simulate " + std::string(flags) + " --timeline " + path("step.csv"));
    const CommandOutcome read = run_with_messages("analyze " + path("step.csv"));
    EXPECT_EQ(read.status, 0) << flags << read.output;
    EXPECT_NE(read.output.find("left out, because a csv"), std::string::npos) << read.output;
  }
}

// A file may be damaged: what does not fit the step is refused with its place.
TEST_F(SavedSteps, RefuseFactsThatDoNotFit) {
  save("interleaved --pp 4 --vpp 2 -m 8 --costs @/parts.json --mem 2,0,-2");
  expect_refusal(R"("unit":[2000000)", R"("unit":[2000001)", "/memory/unit");
  expect_refusal(R"("unit_parts":2)", R"("unit_parts":0)", "/memory/unit_parts");
  expect_refusal(R"("release":"w")", R"("release":"x")", "/memory/release");
  expect_refusal(R"("p2p_mode":"dataflow")", R"("p2p_mode":"x")", ": /made_with/p2p_mode: 'x'");
  expect_refusal(R"("first_end_ns":4000000)", R"("first_end_ns":4000001)",
                 "/parts/runs/0/first_end_ns: must be a whole number from 0 to 4000000");
  expect_refusal(R"("dispatch","expert")", R"("dispatch","x")",
                 "/parts/runs/0/uses/1/1: is not a lane; the lanes are compute, tensor, expert");
  std::string many = R"("uses":[)";
  for (int use = 0; use < 8192; ++use) many += R"(["many","expert",false,0,0],)";
  expect_refusal(R"("uses":[)", many, "/parts/runs/0/uses: has more than 8192 entries");
  save("1f1b --pp 4 -m 8 --p2p 0.2 --network bytes=64MiB,link=100,per-node=2,between=50");
  expect_refusal(R"("busy_ns":)", R"("busy_ns":-)", "/links/0/busy_ns");
  expect_refusal(R"("busy_ns":)", R"("busy_ns":9)",
                 "/links/0/busy_ns: must be a whole number from 0");
  expect_refusal(R"("shared_ns":)", R"("shared_ns":9000)", "/links/0/shared_ns: must be a whole");
  expect_refusal(R"("utilization":0.)", R"("utilization":7.)",
                 "/links/0/utilization: must be a number");
  expect_refusal(R"("uncontended_ns":[)", R"("uncontended_ns":[-)", "/uncontended_ns/0");
  expect_refusal(R"("uncontended_ns":[)", R"("uncontended_ns":[1,)", "/uncontended_ns: has ");
}

TEST_F(SavedSteps, RefuseTurnsThatDoNotFit) {
  save("dualpipe --pp 2 -m 4 --costs @/pairs.json");
  expect_refusal(R"("turns":[[false,2000000],)", R"("turns":[[false,2000000],[true,1],)",
                 "/turns/1/1: must be a whole number from 2000000 to");
  expect_refusal(R"("turns":[[false,2000000],)", R"("turns":[[false,2000000,1],)",
                 "must be [of_backward, end_ns]");
}

TEST_F(SavedSteps, RefuseSpansWithoutUses) {
  save("1f1b --pp 2 -m 2 --costs @/parts.json");
  expect_refusal(R"("uses":[["attention","compute",false,0,0],["dispatch","expert",false,1000000,)"
                 R"(0],["experts","compute",false,0,0]])",
                 R"("uses":[])", "/parts/runs/0/spans: must be empty, as 'uses' is");
}

}  // namespace
}  // namespace bubblescope::tests
