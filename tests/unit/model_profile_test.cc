// Reads measured layers, including the oddities of published files.
#include "traces/costs/model_profile.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_text.h"
#include "tests/support/malformed.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

constexpr const char* kGraph =
    "node1 -- Input0 -- forward_compute_time=635.9, backward_compute_time=0.000, "
    "activation_size=0.0, parameter_size=0.000\n"
    "node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=1.25, "
    "backward_compute_time=2.5, activation_size=822083584.000, parameter_size=7168.000\n"
    "node10 -- LSTM(2048, 1024) -- forward_compute_time=4.649, backward_compute_time=8.641, "
    "activation_size=[9175040.0; 262144.0; 262144.0], parameter_size=50364416.000 -- stage_id=3\n"
    "node3 -- ReLU(inplace) -- forward_compute_time=0.5, backward_compute_time=0.25, "
    "activation_size=4, parameter_size=0\n"
    "\tnode1 -- node2\n"
    "\tnode2 -- node3\n"
    "\tnode3 -- node10";

LayerGraph parse(const std::string& text) { return traces::parse_model_profile(text, "f"); }

TEST(ModelProfile, ReadsAGraphFileInTheOrderOfItsEdges) {
  const LayerGraph graph = parse(kGraph);
  ASSERT_EQ(graph.size(), 3);
  EXPECT_EQ(graph.layers[0].name, "node2");
  EXPECT_EQ(graph.layers[0].kind, "Conv2d(3, 64, kernel_size=(3, 3))");
  EXPECT_EQ(graph.layers[0].forward, 1'250'000);
  EXPECT_EQ(graph.layers[0].backward, 2'500'000);
  EXPECT_EQ(graph.layers[0].parameters, 7168);
  EXPECT_EQ(graph.layers[1].name, "node3");
  EXPECT_EQ(graph.layers[2].name, "node10");
  EXPECT_EQ(graph.inputs[2], std::vector<std::int32_t>{1});
}

// The node called Input contains the time of loading data: 635.9 ms that no stage spends.
TEST(ModelProfile, LeavesOutTheSourceThatLoadsTheData) {
  for (const Layer& layer : parse(kGraph).layers) EXPECT_LT(layer.forward, 100'000'000);
}

TEST(ModelProfile, AddsUpTheTensorsOfAnActivation) {
  EXPECT_EQ(parse(kGraph).layers[2].activations, 9'175'040 + 262'144 + 262'144);
}

// DAPPLE's bert-24 has no edges, its amoeba-36 only four.
TEST(ModelProfile, ChainsNodesWithoutEdgesByTheirNumbers) {
  std::string text = kGraph;
  text.resize(text.find('\t'));
  const LayerGraph graph = parse(text);
  ASSERT_EQ(graph.size(), 3);
  EXPECT_EQ(graph.layers[1].name, "node3");
  EXPECT_EQ(graph.layers[2].name, "node10");
  EXPECT_EQ(graph.inputs[2], std::vector<std::int32_t>{1});
}

TEST(ModelProfile, DropsUnusedItems) {
  const std::string item =
      "node4 -- __getitem__(0) -- forward_compute_time=0, backward_compute_time=0, "
      "activation_size=0, parameter_size=0\n";
  std::string text = kGraph;
  text.insert(text.find('\t'), item);
  EXPECT_EQ(parse(text + "\n\tnode10 -- node4\n").size(), 3);
}

TEST(ModelProfile, TakesTheStagesOfACostFileAsLayers) {
  const LayerGraph graph = parse(
      R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"input_grad":1,"weight_grad":2},)"
      R"({"forward":2,"backward":5,"activation_bytes":{"saved":7}}]})");
  ASSERT_EQ(graph.size(), 2);
  EXPECT_EQ(graph.layers[0].backward, 3'000'000);
  EXPECT_EQ(graph.layers[1].time(), 7'000'000);
  EXPECT_EQ(graph.layers[1].activations, 7);
  EXPECT_EQ(graph.inputs[1], std::vector<std::int32_t>{0});
}

TEST(ModelProfile, RefusesWhatIsNoProfile) { expect_refusals("model_profile.txt", parse); }

TEST(ModelProfile, SurvivesDamage) { expect_survival(kGraph, parse); }

constexpr const char* kAceso =
    "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,more\n"
    "encoder-embedding,173.631,1486.725,0.008,8.000,208.000,12.000,0\n"
    "enc-qkv,700,1300,8,32,24,24,0\r\n"
    "enc-MLP,900.5,1500,32,8,32,16,0\n"
    "gpt-post-process,10,20,8,0,200,400.025,0\n";

TEST(AcesoProfile, RepeatsTheRowsOfALayer) {
  const LayerGraph graph = traces::parse_model_profile(kAceso, "gpt.csv", 3);
  ASSERT_EQ(graph.size(), 1 + 3 * 2 + 1);
  EXPECT_EQ(graph.layers[0].name, "encoder-embedding");
  EXPECT_EQ(graph.layers[1].name, "enc-qkv 1");
  EXPECT_EQ(graph.layers[6].name, "enc-MLP 3");
  EXPECT_EQ(graph.layers[6].forward, 900'500);  // us
  EXPECT_EQ(graph.layers[0].backward, 1'486'725);
  EXPECT_EQ(graph.layers[1].parameters, Bytes{24} << 20);
  EXPECT_EQ(graph.layers[1].activations, Bytes{24} << 20);
  EXPECT_EQ(graph.layers[1].output(), Bytes{32} << 20);  // the bytes sent to the next stage
  for (std::int32_t layer = 1; layer < graph.size(); ++layer)
    EXPECT_EQ(graph.inputs[static_cast<std::size_t>(layer)], std::vector<std::int32_t>{layer - 1});
}

TEST(AcesoProfile, NamesTheLineOfAFault) {
  const std::string head =
      "op_name,forward-compute,backward-compute,output_size,weights,activations\n";
  for (const char* row : {"a,1,2,3,4", "a,1,2,3,4,x", "a,-1,2,3,4,5", "a,1,nan,3,4,5", "a,1,,3,4,5",
                          "a,1e99,2,3,4,5", "a,1,2,3,4,5,6"})
    EXPECT_TRUE(fails_with(
        [&] { traces::parse_model_profile(head + "fine,1,2,3,4,5\n" + row + "\n", "gpt.csv"); },
        "gpt.csv:3: "));
  EXPECT_EQ(
      error_of([&] { traces::parse_model_profile("op_name,forward-compute\na,1\n", "gpt.csv"); }),
      "gpt.csv:1: has no column 'backward-compute'; an Aceso profile has it");
  EXPECT_EQ(error_of([&] { traces::parse_model_profile(head, "gpt.csv"); }),
            "gpt.csv: holds no operator; give the file with a row for each");
}

using ModelProfileFile = TemporaryFolder;

// Two layers of nearly 2^60 bytes each, of which a stage holds several versions: their sum was
// negative.
TEST_F(ModelProfileFile, SizesThatNoStageCanHoldAreRefused) {
  const std::string times = " -- forward_compute_time=1, backward_compute_time=2, ";
  const std::string sizes = "activation_size=4, parameter_size=1152921504606846975\n";
  traces::write_file(path("graph.txt"),
                     "node1 -- a" + times + sizes + "node2 -- b" + times + sizes);
  EXPECT_TRUE(fails_with([&] { traces::read_model_profile(path("graph.txt"), 1); },
                         "its layers have more than 2^44 bytes of parameters and activations up to "
                         "layer 'node1'"));
}

}  // namespace
}  // namespace bubblescope::tests
