// Tests the words for the two parts of a backward, and parts of which one has an unknown name.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_guesses.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

/// One micro-batch on two ranks: a forward, and the parts of a backward by these names.
std::string split_backward(const std::string& input, const std::string& weight) {
  Events events;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string arguments = R"("microbatch":0,"step":0,"pp_rank":)" + std::to_string(rank);
    events.slice("forward", rank, 0, 1'000 * rank, 1'000, arguments)
        .slice(input, rank, 0, 3'000 - 1'000 * rank, 1'000, arguments)
        .slice(weight, rank, 0, 4'000 - 1'000 * rank, 1'000, arguments);
  }
  return events.list();
}

traces::AssembledSteps read(const std::string& text) {
  return traces::assemble_steps(traces::parse_trace({"t.json", text}));
}

TEST(BackwardWords, ComeInPairs) {
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"dgrad", "wgrad"},
      {"dx", "dw"},
      {"grad-input", "grad-weight"},
      {"backward-input", "backward-weight"},
      {"backward_input", "backward_weight"},
      {"backward_i", "backward_w"},
      {"backward_dgrad", "backward_wgrad"},
      {"backward-b", "backward-w"},
      {"bwd_input", "bwd_weight"},
      {"bwd_dx", "bwd_dw"},
      {"bwd_input_grad", "bwd_weight_grad"},
      {"BackwardInput", "BackwardWeight"},
      {"backwardInput", "backwardWeight"},
      {"BACKWARD_INPUT", "BACKWARD_WEIGHT"},
      {"BackwardInputPass", "BackwardWeightPass"},
      {"BackwardInputGrad", "WeightGrad"},
      {"BwdDGrad", "WGrad"},
      {"Backward Dx", "Backward Dw"},
      {"BackwardB", "BackwardW"},
      {"backward_input_step", "backward_weight_step"}};
  for (const auto& [input, weight] : pairs) {
    const traces::AssembledSteps steps = read(split_backward(input, weight));
    ASSERT_EQ(steps.steps.size(), 1u) << input;
    EXPECT_EQ(steps.steps[0].schedule->op_count(), 6) << input;
    EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
  }
}

TEST(BackwardWords, OfOtherThingsAreNoOps) {
  for (const char* word :
       {"input", "weight", "b_", "backward_", "bwd_input_2", "Input", "FullForward", "ForwardInput",
        "backward__input", "backward.input", "BackwardHook", "forwarder", "Passforward", "r",
        "send_f", "_backward", ""})
    EXPECT_FALSE(traces::parse_kind_word(word)) << word;
}

TEST(BackwardWords, OfWholeOpsAreReadInAnySpelling) {
  for (const char* word : {"forward", "Forward", "FORWARD", "ForwardPass", "forward_pass", "fwd",
                           "Fwd", "FWD", "forwardStep", "forward compute"})
    EXPECT_EQ(traces::parse_kind_word(word), OpKind::kForward) << word;
  for (const char* word : {"Backward", "BackwardPass", "backward-pass", "Bwd", "FullBackward",
                           "full_backward", "BackwardStep"})
    EXPECT_EQ(traces::parse_kind_word(word), OpKind::kBackward) << word;
}

// "ForwardPass" lies within "forward", and both parts within "backward": three ops, not six.
TEST(BackwardWords, WithinTheirOpAreNoOpsOfTheirOwn) {
  Events events;
  const auto add = [&](const char* name, int rank, int start, int length) {
    const std::string arguments = R"("microbatch":0,"step":0,"pp_rank":)" + std::to_string(rank);
    events.slice(name, rank, 0, start, length, arguments);
  };
  for (int rank = 0; rank < 2; ++rank) {
    add("forward", rank, 1'000 * rank, 1'000);
    add("ForwardPass", rank, 1'000 * rank + 10, 980);
    add("backward", rank, 4'000 - 2'000 * rank, 2'000);
    add("InputGrad", rank, 4'000 - 2'000 * rank, 1'000);
    add("WeightGrad", rank, 5'000 - 2'000 * rank, 1'000);
  }
  const traces::AssembledSteps steps = read(events.list());
  ASSERT_EQ(steps.steps.size(), 1u);
  EXPECT_EQ(steps.steps[0].schedule->op_count(), 4);
  EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
}

TEST(BackwardWords, MayBeArguments) {
  Events events;
  for (int rank = 0; rank < 2; ++rank)
    for (const bool forward : {true, false})
      events.slice("compute", rank, 0, forward ? 1'000 * rank : 3'000 - 1'000 * rank, 1'000,
                   R"("microbatch":0,"step":0,"pp_rank":)" + std::to_string(rank) +
                       (forward ? R"(,"op":"forward")" : R"(,"op":"Backward")"));
  EXPECT_EQ(read(events.list()).steps.at(0).schedule->op_count(), 4);
}

TEST(BackwardWords, OfInputGradientsAreSuggestedAsSuch) {
  EXPECT_NE(traces::suggest_rule("my_bwd_input 3").find(R"("kind":"I")"), std::string::npos);
  EXPECT_NE(traces::suggest_rule("my_bwd_weight 3").find(R"("kind":"W")"), std::string::npos);
  EXPECT_NE(traces::suggest_rule("MyBwdInput 3").find(R"("kind":"I")"), std::string::npos);
  EXPECT_NE(traces::suggest_rule("RunBackwardDw 3").find(R"("kind":"W")"), std::string::npos);
}

TEST(BackwardWords, OfUnknownMeaningBesideWeightGradientsAreNamed) {
  try {
    read(split_backward("chain rule", "dw"));
    FAIL();
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("'chain rule' (2)"), std::string::npos) << said;
    EXPECT_EQ(said.find("begins or ends within"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace bubblescope::tests
