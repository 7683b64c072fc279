// Cost files: exact durations, spread over a schedule's stages, and what files must contain.
#include "traces/costs/cost_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/ir/error.h"
#include "sim/ir/recompute.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/malformed.h"
#include "tests/support/test_paths.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/files/file.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

CostTable read(const std::string& text) { return traces::parse_cost_file(text, "f.json"); }

CostTable with(const std::string& keys) {
  return read("{\"format\":\"bubblescope-costs/1\"," + keys + "}");
}

const Schedule& split() {
  static const Schedule schedule =
      traces::parse_schedule_text("0F0 0I0 0W0 | 1F0 1I0 1W0", "split");
  return schedule;
}

TEST(CostFile, ReadsNumbersAsMillisecondsAndStringsWithTheirUnit) {
  const CostModel model = make_cost_model(
      with(R"("stages":[{"forward":0.1,"input_grad":"18.522us","weight_grad":3},)"
           R"({"forward":"1e-3s","input_grad":1,"weight_grad":1,"backward":"7ms","recompute":2}])"),
      split());
  EXPECT_EQ(model.stages[0].forward, 100'000);
  EXPECT_EQ(model.stages[0].input_grad, 18'522);
  EXPECT_EQ(model.stages[0].weight_grad, 3'000'000);
  EXPECT_EQ(model.stages[0].backward, 3'018'522);  // input_grad + weight_grad
  EXPECT_EQ(model.stages[0].recompute, 100'000);   // forward
  EXPECT_EQ(model.stages[1].forward, 1'000'000);
  EXPECT_EQ(model.stages[1].backward, 7'000'000);
  EXPECT_EQ(model.stages[1].recompute, 2'000'000);
}

// Everything but a cluster is written, so reading the text and writing it again changes nothing.
TEST(CostFile, ReadsWhatItsWriterWrites) {
  const std::string text =
      R"("stages":[{"forward":"10ns","backward":"21ns","input_grad":"11ns","weight_grad":"9ns",)"
      R"("recompute":"8ns","selective_recompute":"2ns","overlapped_pair":"30ns",)"
      R"("optimizer":"3ns","reduce_grad":"4ns","unshard":"5ns",)"
      R"("activation_bytes":{"saved":100,"released_by_input_grad":60,"checkpoint":10,)"
      R"("selective_checkpoint":50},"evict":"6ns","load":"7ns","evict_to_rank":"8ns",)"
      R"("load_from_rank":"9ns","weight_bytes":12,)"
      R"("contended":{"forward":["11ns","12ns"],"weight_grad":["10ns"]}},{"forward":"1ns"}],)"
      R"("message":{"latency":"5ns","bytes":64,"bandwidth_gbps":[[32,1.5],[128,3.0]],)"
      R"("contended":["6ns"]},"norm":"2ns","copy":{"latency":"1ns","bandwidth_gbps":8.0,)"
      R"("slowdown":[1.25],"to_rank":{"latency":"2ns"}},"links":[{"from":0,"to":1,)"
      R"("latency":"7ns","bytes":32,"bandwidth_gbps":4.0},{"from":1,"to":0,"latency":"5ns",)"
      R"("bandwidth_gbps":2.0}],"ranks_per_device":2,"memory":{"static_bytes":[1,2]})";
  const std::string written = traces::write_cost_file(with(text));
  EXPECT_EQ(nlohmann::ordered_json::parse(written).dump(),
            "{\"format\":\"bubblescope-costs/1\"," + text + "}");
  EXPECT_EQ(traces::write_cost_file(read(written)), written);
}

TEST(CostFile, IsNotWrittenWithoutItsCluster) {
  const CostTable table = with(R"("stages":[{"forward":1}],"cluster":{"ranks_per_node":2})");
  EXPECT_EQ(error_of([&] { traces::write_cost_file(table); }),
            "f.json: a cluster cannot be written to a cost file");
}

TEST(CostFile, SaysWhatAnUpdateTakesAndWhatWeightsWeigh) {
  const CostTable file =
      with(R"("stages":[{"forward":1,"input_grad":1,"weight_grad":1,"optimizer":"3us",)"
           R"("reduce_grad":"5us","unshard":"4us","weight_bytes":"2KiB"},)"
           R"({"forward":1,"input_grad":1,"weight_grad":1,"weight_bytes":7}],"norm":"2us")");
  const CostModel model = make_cost_model(file, split());
  EXPECT_EQ(model.norm, 2'000);
  ASSERT_EQ(model.updates.size(), 2u);
  EXPECT_EQ(model.updates[0].optimizer, 3'000);
  EXPECT_EQ(model.updates[0].reduce_grad, 5'000);
  EXPECT_EQ(model.updates[0].unshard, 4'000);
  EXPECT_EQ(model.updates[1].optimizer, 0);
  EXPECT_EQ(make_memory_model(file, split()).weight_bytes, (std::vector<Bytes>{2048, 7}));
}

TEST(CostFile, GivesWeightsForAllStagesOrForNone) {
  const CostTable file =
      with(R"("stages":[{"forward":1,"input_grad":1,"weight_grad":1,"weight_bytes":7},)"
           R"({"forward":1,"input_grad":1,"weight_grad":1}])");
  EXPECT_TRUE(fails_with([&] { make_memory_model(file, split()); }, "'weight_bytes'"));
}

constexpr const char* kTwoStages = R"("stages":[{"forward":1,"input_grad":1,"weight_grad":1},)"
                                   R"({"forward":1,"input_grad":1,"weight_grad":1}])";

// 1 MiB is 8 388 608 bits; 400 Gb/s moves 400 bits in a nanosecond: 20 971.52 ns, rounded up.
TEST(CostFile, AddsBytesOverBandwidthToTheLatency) {
  const CostModel model =
      make_cost_model(with(std::string(kTwoStages) +
                           R"(,"message":{"latency":"10us","bytes":"1MiB","bandwidth_gbps":400})"),
                      split());
  EXPECT_EQ(model.message, 10'000 + 20'972);
  EXPECT_TRUE(model.message_between.empty());
}

TEST(CostFile, GivesLinksTheirOwnLatencyAndTheRestOfTheMessage) {
  const CostModel model =
      make_cost_model(with(std::string(kTwoStages) +
                           R"(,"message":{"latency":"10us","bytes":1000,"bandwidth_gbps":8},)"
                           R"("links":[{"from":1,"to":0,"latency":"30us"}])"),
                      split());
  EXPECT_EQ(model.message_between, (std::vector<Nanos>{11'000, 11'000, 31'000, 11'000}));
}

TEST(CostFile, CutsStagesIntoSlices) {
  const CostTable file =
      with(R"("stages":[{"forward":"10ns","backward":"20ns","overlapped_pair":"25ns",)"
           R"("activation_bytes":{"saved":10,"released_by_input_grad":4}}])");
  const Schedule schedule = traces::parse_schedule_text("0F0 0F0.1 0F0.2 0B0.2 0B0.1 0B0");
  const CostModel model = make_cost_model(file, schedule);
  EXPECT_EQ(model.slices, 3);
  EXPECT_EQ(model.stages[0].forward, 4);
  EXPECT_EQ(model.stages[1].forward, 3);
  EXPECT_EQ(model.stages[2].backward, 6);
  EXPECT_EQ(*model.stages[0].overlapped_pair, 9);
  const MemoryDelta bytes = make_memory_model(file, schedule).activation_bytes[0];
  EXPECT_EQ(bytes.forward, 3);
  EXPECT_EQ(bytes.forward + bytes.input_grad + bytes.weight_grad, 0);
}

TEST(CostFile, GivesReplicasTheCostsOfTheirOriginals) {
  const Schedule schedule = traces::parse_schedule_text("0F0 3F1 3B1 0B0 | 2F1 1F0 1B0 2B1");
  ASSERT_EQ(schedule.pipelines, 2);
  const CostModel model = make_cost_model(
      with(R"("stages":[{"forward":1,"backward":2},{"forward":3,"backward":4}])"), schedule);
  ASSERT_EQ(model.stages.size(), 4u);
  EXPECT_EQ(model.stages[3].forward, 3'000'000);
}

TEST(CostFile, GivesMemoryInBytes) {
  const MemoryModel model = make_memory_model(
      with(R"("stages":[{"forward":1,"activation_bytes":{"saved":"1GiB","released_by_input_grad":)"
           R"("512MiB"}},{"forward":1,"activation_bytes":{"saved":"1.5kB"}}],)"
           R"("memory":{"static_bytes":["2GB",7]})"),
      split());
  EXPECT_EQ(model.activation_bytes[0].forward, Bytes{1} << 30);
  EXPECT_EQ(model.activation_bytes[0].input_grad, -(Bytes{1} << 29));
  EXPECT_EQ(model.activation_bytes[0].weight_grad, -(Bytes{1} << 29));
  EXPECT_EQ(model.activation_bytes[1].forward, 1'500);
  EXPECT_EQ(model.activation_bytes[1].weight_grad, -1'500);
  EXPECT_EQ(model.static_bytes, (std::vector<Bytes>{2'000'000'000, 7}));
}

constexpr const char* kRecomputing =
    R"("stages":[{"forward":"10ns","backward":"20ns","recompute":"9ns","selective_recompute":"3ns",)"
    R"("activation_bytes":{"saved":1000,"checkpoint":100,"selective_checkpoint":400}},)"
    R"({"forward":"10ns","backward":"20ns","selective_recompute":"4ns",)"
    R"("activation_bytes":{"saved":1000}}])";

TEST(CostFile, GivesEachKindOfRecomputationItsTimeAndItsCheckpoint) {
  const CostTable file = with(kRecomputing);
  const Schedule plain = traces::parse_schedule_text("0F0 0B0 | 1F0 1B0");
  const Schedule full = with_recompute(plain, {Recompute::kFull});
  EXPECT_EQ(make_cost_model(file, full).stages[0].recompute, 9);
  EXPECT_EQ(make_cost_model(file, full).stages[1].recompute, 10);  // forward
  EXPECT_EQ(make_memory_model(file, full).checkpoint_bytes, (std::vector<Bytes>{100, 0}));
  const Schedule selective = with_recompute(plain, {Recompute::kSelective});
  EXPECT_EQ(make_cost_model(file, selective).stages[0].recompute, 3);
  EXPECT_EQ(make_cost_model(file, selective).stages[1].recompute, 4);
  EXPECT_EQ(make_memory_model(file, selective).checkpoint_bytes,
            (std::vector<Bytes>{400, 298}));  // 1000 * 34 / 114
  EXPECT_EQ(error_of([&] {
              make_cost_model(with(R"("stages":[{"forward":1,"backward":2}])"),
                              with_recompute(traces::parse_schedule_text("0F0 0B0", "one"),
                                             {Recompute::kSelective}));
            }),
            "f.json: /stages/0: lacks 'selective_recompute', but one recomputes attention there; "
            "add it");
}

// 1000 bytes are 8000 bits; 4 Gb/s moves 4 bits in a nanosecond.
TEST(CostFile, GivesCopiesTheBytesThatAreKeptOverTheBandwidth) {
  const CostTable file =
      with(std::string(kRecomputing) + R"(,"copy":{"latency":"5ns","bandwidth_gbps":4})");
  const Schedule plain =
      traces::parse_schedule_text("0F0 0F1 0EVICT0 0B1 0LOAD0 0B0 | 1F0 1F1 1B1 1B0");
  EXPECT_EQ(make_cost_model(file, plain).stages[0].evict, 2005);
  EXPECT_EQ(make_cost_model(file, plain).stages[0].load, 2005);
  const Schedule checkpoints = with_recompute(plain, {Recompute::kFull});
  EXPECT_EQ(make_cost_model(file, checkpoints).stages[0].evict,
            205);  // of the checkpoint alone
  const CostTable own = with(
      R"("stages":[{"forward":1,"backward":1,"evict":"7ns","load":"8ns"},{"forward":1,"backward":1}],)"
      R"("copy":{"latency":"5ns"})");
  EXPECT_EQ(make_cost_model(own, plain).stages[0].evict, 7);
  EXPECT_EQ(make_cost_model(own, plain).stages[0].load, 8);
  EXPECT_EQ(make_cost_model(own, plain).stages[1].load, 5);
  EXPECT_EQ(
      error_of([&] {
        make_cost_model(with(R"("stages":[{"forward":1,"backward":1},{"forward":1,"backward":1}],)"
                             R"("copy":{"bandwidth_gbps":4})"),
                        plain);
      }),
      "f.json: /stages/0: lacks 'activation_bytes', which /copy/bandwidth_gbps needs; add it, "
      "or give 'evict' and 'load'");
}

TEST(CostFile, MustCoverTheSchedule) {
  const CostTable one = with(R"("stages":[{"forward":1}])");
  EXPECT_EQ(error_of([&] { make_cost_model(one, split()); }),
            "f.json: /stages: has 1 entry, but split has 2 stages (2 ranks x 1 chunk); give "
            "one entry per stage");
  const CostTable no_split = with(R"("stages":[{"forward":1,"backward":2},{"forward":1}])");
  EXPECT_EQ(
      error_of([&] { make_cost_model(no_split, split()); }),
      "f.json: /stages/0: lacks 'input_grad' and 'weight_grad', but split splits the backward; "
      "add them");
  EXPECT_EQ(error_of([&] {
              make_cost_model(no_split, traces::parse_schedule_text("0F0 0B0 | 1F0 1B0"));
            }),
            "f.json: /stages/1: lacks 'backward'; add it, or 'input_grad' and 'weight_grad'");
  EXPECT_EQ(error_of([&] { make_cost_model(no_split, traces::parse_schedule_text("0F0 | 1F0")); }),
            "");
  const CostTable link = with(std::string(kTwoStages) + R"(,"links":[{"from":0,"to":2}])");
  EXPECT_EQ(error_of([&] { make_cost_model(link, split()); }),
            "f.json: /links/0: joins ranks 0 and 2, but ranks are 0..1; remove it");
  const CostTable some =
      with(R"("stages":[{"forward":1,"activation_bytes":{"saved":1}},{"forward":1}],)"
           R"("memory":{"static_bytes":[1]})");
  EXPECT_EQ(
      error_of([&] { make_memory_model(some, split()); }),
      "f.json: /stages: some entries have 'activation_bytes' and some have not; give them for "
      "all stages or for none");
  const CostTable ranks = with(std::string(kTwoStages) + R"(,"memory":{"static_bytes":[1]})");
  EXPECT_EQ(error_of([&] { make_memory_model(ranks, split()); }),
            "f.json: /memory/static_bytes: has 1 entry for 2 ranks; give one per rank");
}

std::string read_document(const std::string& name) {
  return traces::read_file(source_folder() + "/docs/" + name);
}

TEST(CostFile, IsReadAsItsDocumentShowsIt) {
  const std::string document = read_document("cost_file.md");
  const std::size_t begin = document.find("```json\n") + 8;
  const CostTable file = read(document.substr(begin, document.find("```", begin) - begin));
  EXPECT_EQ(make_cost_model(file, split()).stages[1].backward, 21'000'000);
  EXPECT_EQ(make_memory_model(file, split()).static_bytes.size(), 2u);
}

/// Returns the reader's hint for a key that resembles no known one: "known are format, stages,
/// ...".
std::string known_keys(const std::string& keys_and_object) {
  const std::string message = error_of([&] { with(keys_and_object); });
  return message.substr(message.find("known are ") + 10);
}

std::string keys_of(const nlohmann::ordered_json& properties) {
  std::string keys;
  for (const auto& [key, _] : properties.items()) keys += (keys.empty() ? "" : ", ") + key;
  return keys;
}

// 1 MiB at 400 Gb/s takes 20 972 ns; 100 Gb/s, which two ranks share, four times 20 971.52.
TEST(CostFile, PlacesRanksAndDevicesOfACluster) {
  const CostTable file =
      with(std::string(kTwoStages) +
           R"(,"message":{"latency":"10us","bytes":"1MiB","bandwidth_gbps":400},)"
           R"("cluster":{"ranks_per_node":1,"between_nodes":{"latency":"20us",)"
           R"("bandwidth_gbps":[["1MiB",400],["2MiB",800]]},)"
           R"("devices":[{"name":"nic","ranks_per_device":2,)"
           R"("bandwidth_gbps":100,"scope":"between_nodes"}]})");
  const Cluster placed = *make_cluster(file, split());
  EXPECT_EQ(placed.node_of_rank, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(placed.message_bytes, 1 << 20);
  EXPECT_EQ(placed.within_node.latency, 10'000);
  EXPECT_EQ(placed.between_nodes.points.size(), 2u);
  EXPECT_EQ(placed.devices.size(), 1u);
  EXPECT_EQ(placed.devices[0].name, "nic 0");
  EXPECT_EQ(placed.devices[0].ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(make_cost_model(file, split()).message_between[1], 20'000 + 83'887);
}

// I and W take 10 + 20 us alone and 15 + 30 us with two busy: B then takes 1.5 times as long.
TEST(CostFile, SaysWhatOpsTakeUnderContention) {
  const CostTable file =
      with(R"("ranks_per_device":2,"stages":[{"forward":"10us","input_grad":"10us",)"
           R"("weight_grad":"20us","contended":{"forward":["11us","12us"],"input_grad":["15us"],)"
           R"("weight_grad":["30us"]}},{"forward":1,"input_grad":1,"weight_grad":1}])");
  const Contention found = *make_contention(file, split());
  EXPECT_EQ(found.ranks_per_device, 2);
  const auto of = [&](std::size_t stage, OpKind kind) {
    return found.stages[stage][static_cast<std::size_t>(kind)];
  };
  EXPECT_EQ(of(0, OpKind::kForward), (Slowdown{1.1, 1.2}));
  EXPECT_EQ(of(0, OpKind::kBackward), (Slowdown{1.5}));
  EXPECT_EQ(of(0, OpKind::kRecompute), (Slowdown{1.1, 1.2}));  // as the forward
  EXPECT_EQ(of(1, OpKind::kForward), Slowdown{});
  EXPECT_FALSE(make_contention(with(R"("stages":[{"forward":1},{"forward":1}])"), split()));
}

TEST(CostFile, RefusesOpsThatAreFasterUnderContention) {
  const CostTable file =
      with(R"("stages":[{"forward":2,"contended":{"forward":[3,1]}},{"forward":1}])");
  EXPECT_EQ(error_of([&] { make_contention(file, split()); }),
            "f.json: /stages/0/contended/forward: 1 ms is less than the 2 ms that it takes "
            "alone; correct one of them");
}

TEST(CostFile, ReadsTheOldNamesOfKeys) {
  const std::string text =
      R"("ranks_per_device":2,"stages":[{"forward":"10us","backward":"20us","contended":)"
      R"({"forward":["11us"]},"activation_bytes":{"saved":10}},{"forward":1,"backward":1}],)"
      R"("message":{"latency":"9us","contended":["10us","12us"]},"cluster":{"devices":[)"
      R"({"name":"nic","ranks_per_device":2,"bandwidth_gbps":100,"scope":"between_nodes"}]})";
  std::string old = text;
  const std::pair<std::string, std::string> names[] = {
      {"\"contended\"", "\"in_company\""}, {"\"saved\"", "\"kept\""}, {"\"scope\"", "\"carries\""}};
  for (const auto& [name, old_name] : names)
    for (std::size_t at = old.find(name); at != old.npos; at = old.find(name))
      old.replace(at, name.size(), old_name);
  for (const CostTable& file : {with(text), with(old)}) {
    const Contention contended = *make_contention(file, split());
    EXPECT_EQ(contended.stages[0][static_cast<std::size_t>(OpKind::kForward)], Slowdown{1.1});
    EXPECT_EQ(contended.message, (Slowdown{10.0 / 9, 12.0 / 9}));
    EXPECT_EQ(file.stages[0].activation_bytes->forward, 10);
    EXPECT_EQ(file.cluster->devices[0].scope, Scope::kBetweenNodes);
  }
}

TEST(CostFile, HasTheKeysOfItsSchema) {
  const auto schema = nlohmann::ordered_json::parse(read_document("costs.schema.json"));
  const auto& file = schema["properties"];
  const auto& stage = file["stages"]["items"]["properties"];
  const std::string stray = R"({"?????????????????????":0})";
  const std::string stages = R"("stages":[{"forward":1}],)";
  EXPECT_EQ(known_keys(R"("?????????????????????":0)"), keys_of(file));
  EXPECT_EQ(known_keys(R"("stages":[)" + stray + "]"), keys_of(stage));
  EXPECT_EQ(known_keys(R"("stages":[{"forward":1,"activation_bytes":)" + stray + "}]"),
            keys_of(stage["activation_bytes"]["properties"]));
  EXPECT_EQ(known_keys(R"("stages":[{"forward":1,"contended":)" + stray + "}]"),
            keys_of(stage["contended"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("message":)" + stray), keys_of(file["message"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("links":[)" + stray + "]"),
            keys_of(file["links"]["items"]["properties"]));
  const auto& cluster = file["cluster"]["properties"];
  EXPECT_EQ(known_keys(stages + R"("cluster":)" + stray), keys_of(cluster));
  EXPECT_EQ(known_keys(stages + R"("cluster":{"within_node":)" + stray + "}"),
            keys_of(schema["$defs"]["speed"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("cluster":{"devices":[)" + stray + "]}"),
            keys_of(cluster["devices"]["items"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("copy":)" + stray), keys_of(file["copy"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("memory":)" + stray), keys_of(file["memory"]["properties"]));
  const auto& parts = schema["$defs"]["op_parts"]["properties"];
  EXPECT_EQ(known_keys(R"("forward":{"parts":[],"?????????????????????":0})"), keys_of(parts));
  EXPECT_EQ(known_keys(R"("forward":{"parts":[)" + stray + "]}"),
            keys_of(parts["parts"]["items"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("parts":)" + stray),
            keys_of(schema["$defs"]["parts_by_kind"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("part_contention":[)" + stray + "]"),
            keys_of(file["part_contention"]["items"]["properties"]));
  const auto& noise = file["noise"]["properties"];
  EXPECT_EQ(known_keys(stages + R"("noise":)" + stray), keys_of(noise));
  EXPECT_EQ(known_keys(stages + R"("noise":{"straggler":)" + stray + "}"),
            keys_of(noise["straggler"]["properties"]));
  EXPECT_EQ(known_keys(stages + R"("replicas":[)" + stray + "]"),
            keys_of(file["replicas"]["items"]["properties"]));
}

TEST(CostFile, RefusesWhatIsMalformed) { expect_refusals("costs.txt", read); }

TEST(CostFile, SurvivesDamage) {
  expect_survival(R"({"format":"bubblescope-costs/1","forward":{"layers":2,"parts":[{"name":"a",)"
                  R"("time":[1,2]},{"name":"b","lane":"expert","time":"3us","after":["a"]}]},)"
                  R"("backward":1,"overlapped_pair":{"order":["F.a","|","F.b"]},)"
                  R"("part_contention":[{"lane":"compute","beside":"expert","slowdown":1.5}]})",
                  read);
  expect_survival(R"({"format":"bubblescope-costs/1","stages":[{"forward":"1ms","backward":2}],)"
                  R"("message":{"latency":1,"bytes":"1MiB","bandwidth_gbps":400.5},)"
                  R"("copy":{"latency":1,"bandwidth_gbps":4},"outside_pipeline":3,)"
                  R"("replicas":[{"stages":[{"forward":1,"backward":2}]}],"divisible":true,)"
                  R"("noise":{"jitter":0.1,"straggler":{"probability":0.1,"factor":2}}})",
                  read);
}

}  // namespace
}  // namespace bubblescope::tests
