#include "traces/measured/name_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/name_guesses.h"
#include "traces/measured/seen_names.h"

namespace bubblescope::tests {
namespace {

traces::NameRules parse(const std::string& rules) {
  return traces::NameRules::parse(R"({"format":"bubblescope-rules/1","rules":[)" + rules + "]}",
                                  "rules.json");
}

std::string refusal(const std::string& rules) {
  return error_of([&] { parse(rules); });
}

TEST(NameRules, TakeNumbersFromGroups) {
  const traces::NameRules rules = parse(
      R"x({"match":"fwd mb(\\d+) chunk (\\d+)","kind":"F","microbatch":"$1-1","chunk":"$2"})x");
  const auto meaning = rules.find("fwd mb12 chunk 1");
  ASSERT_TRUE(meaning && meaning->op);
  EXPECT_EQ(meaning->op->op.kind, OpKind::kForward);
  EXPECT_EQ(meaning->op->op.microbatch, 11);
  EXPECT_EQ(meaning->op->chunk, 1);
  EXPECT_FALSE(meaning->op->has_stage);
  EXPECT_FALSE(rules.find("my fwd mb12 chunk 1"));  // the whole name must match
}

TEST(NameRules, TakeTheKindFromAGroup) {
  const traces::NameRules rules =
      parse(R"x({"match":"(forward|bwd|W)-(\\d+)","kind":"$1","stage":3,"microbatch":"$2"})x");
  EXPECT_EQ(rules.find("bwd-4")->op->op, backward(3, 4));
  EXPECT_EQ(rules.find("W-0")->op->op, weight_grad(3, 0));
}

TEST(NameRules, TheFirstThatMatchesDecides) {
  const traces::NameRules rules = parse(
      R"x({"match":"PP:0F0","kind":"ignore"},{"match":"(\\d+) done","kind":"step","step":"$1"})x");
  traces::NameMatcher matcher(&rules);
  EXPECT_FALSE(matcher.names_op("PP:0F0"));
  EXPECT_TRUE(matcher.names_op("PP:0F1"));  // no rule: the usual meaning
  EXPECT_TRUE(matcher.find("17 done").is_step);
  EXPECT_EQ(matcher.find("17 done").step, 17);
}

// As DT-FM writes them: every op is a "comp" of its rank's process.
TEST(NameRules, MatchThreadsCategoriesAndArguments) {
  const traces::NameRules rules = parse(
      R"x({"match":"c(o)mp","thread":"(\\d)\\. (\\w+)-compute","category":"gpu(\\d)","kind":"$3",)x"
      R"x("microbatch":"args.micro-batch","step":"args.n-1","chunk":"$4"})x");
  ASSERT_EQ(rules.arguments(), (std::vector<std::string>{"micro-batch", "n"}));
  EXPECT_TRUE(rules.need_more("comp"));
  EXPECT_FALSE(rules.need_more("recv"));
  EXPECT_FALSE(rules.find("comp"));  // a name alone is not enough
  const std::vector<std::string> arguments{"7", "3"};
  // A thread is matched by its name, or else by its number.
  for (const bool is_named : {true, false}) {
    const char* const thread = "5. backward-compute";
    const auto meaning =
        rules.find({"comp", is_named ? thread : "", is_named ? "140" : thread, "gpu1", arguments});
    ASSERT_TRUE(meaning && meaning->op);
    EXPECT_EQ(meaning->op->op.kind, OpKind::kBackward);
    EXPECT_EQ(meaning->op->op.microbatch, 7);
    EXPECT_EQ(meaning->op->step, 2);
    EXPECT_EQ(meaning->op->chunk, 1);
  }
  EXPECT_FALSE(rules.find({"comp", "5. backward-compute", "", "cpu", arguments}));
  EXPECT_FALSE(rules.find({"comp", "5. optimizer", "", "gpu1", arguments}));
  const std::vector<std::string> missing{"", "3"};
  EXPECT_EQ(error_of([&] {
              rules.find({"comp", "5. backward-compute", "", "gpu1", missing});
            }),
            "`rules`: the rule for 'c(o)mp' takes \"microbatch\" from '', which is not a number "
            "from 0 to 16777215; correct the rule");
}

TEST(NameRules, AreCheckedWithTheirPlace) {
  EXPECT_NE(refusal(R"({"match":"a(","kind":"F"})").find("/rules/0/match"), std::string::npos);
  EXPECT_NE(refusal(R"({"match":"a","kind":"X"})").find("/rules/0/kind"), std::string::npos);
  EXPECT_NE(
      refusal(R"({"match":"a","kind":"F","stage":"$1"})").find("of its rule have 0 in brackets"),
      std::string::npos);
  EXPECT_NE(refusal(R"x({"match":"(a)","kind":"F","stage":"1"})x").find("$1-1"), std::string::npos);
  EXPECT_NE(refusal(R"({"match":"a","kind":"F","stage":0,"chunk":0})").find("one of them"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"match":"a","kynd":"F"})").find("kind"), std::string::npos);
  EXPECT_NE(refusal("").find("1 to 1000 rules"), std::string::npos);
}

TEST(NameRules, RefuseNumbersThatNoOpHas) {
  const traces::NameRules rules = parse(R"x({"match":"F(.*)","kind":"F","microbatch":"$1"})x");
  EXPECT_EQ(error_of([&] { rules.find("Fx"); }),
            "`rules`: the rule for 'F(.*)' takes \"microbatch\" from 'x', which is not a number "
            "from 0 to 16777215; correct the rule");
  EXPECT_EQ(error_of([&] { rules.find("F99999999999"); }),
            "`rules`: the rule for 'F(.*)' takes \"microbatch\" from '99999999999', which is not a "
            "number from 0 to 16777215; correct the rule");
  EXPECT_EQ(rules.find("F7")->op->op.microbatch, 7);
}

TEST(NameRules, TakeNoExponentialTime) {
  // With a backtracking matcher this name would take longer than the universe is old.
  const traces::NameRules rules = parse(R"x({"match":"(a*)*b","kind":"F"})x");
  EXPECT_FALSE(rules.find(std::string(400, 'a')));
}

TEST(SeenNames, AreListedByFrequencyWithARuleThatFits) {
  traces::SeenNames names;
  for (int time = 0; time < 3; ++time) names.add("dataloader");
  for (int microbatch = 0; microbatch < 8; ++microbatch)
    names.add("chunk0 forward mb " + std::to_string(microbatch));
  for (int time = 0; time < 50; ++time) names.add("recv_forward");
  const std::string text = names.describe();
  EXPECT_LT(text.find("'recv_forward' (50 like it)"), text.find("(8 like it)")) << text;
  EXPECT_TRUE(text.ends_with(
      R"x({"match":"chunk(\\d+) forward mb (\\d+)","kind":"F","chunk":"$1","microbatch":"$2"}]})x"))
      << text;
}

// The words before numbers say what they are, and without one the first is the micro-batch.
TEST(SeenNames, SuggestNumbersByTheirWords) {
  const struct {
    const char* name;
    const char* rule;
  } cases[] = {
      {"bwd s3 mb0", R"x("stage":"$1","microbatch":"$2")x"},
      {"fwd gpu2 mb7", R"x("rank":"$1","microbatch":"$2")x"},
      {"F m1 c0", R"x("microbatch":"$1","chunk":"$2")x"},
      {"forward micro_batch 4 pp 2", R"x("microbatch":"$1","rank":"$2")x"},
      {"fwd 3 microbatch 4", R"x("microbatch":"$2")x"},
      {"forward_3", R"x("microbatch":"$1")x"},
      {"stage1 fwd 2", R"x("stage":"$1","microbatch":"$2")x"},
      {"iter 7 fwd 2 layer 5", R"x("step":"$1","microbatch":"$2")x"},
  };
  for (const auto& one : cases) {
    const std::string rule = traces::suggest_rule(one.name);
    EXPECT_TRUE(rule.ends_with(std::string(one.rule) + "}")) << rule;
  }
}

// PiPPy writes the stage first, Alpa a request and a stage.
TEST(SeenNames, SuggestNothingThatIsOpen) {
  EXPECT_EQ(traces::suggest_rule("F_3,0"),
            R"x({"match":"F_(\\d+),(\\d+)","kind":"F","microbatch":"$?"})x");
  EXPECT_EQ(traces::suggest_rule("r0s1"),
            R"x({"match":"r(\\d+)s(\\d+)","kind":"?","microbatch":"$1","stage":"$2"})x");
}

TEST(SeenNames, SuggestARuleForEveryKind) {
  traces::SeenNames names;
  for (const char* const name : {"B_3,0", "F_0,0", "B_2,1"}) names.add(name);
  EXPECT_TRUE(names.describe().ends_with(
      R"x(can say what they mean; replace $? with the group that is the micro-batch ($1, $2, ...): )x"
      R"x({"format":"bubblescope-rules/1","rules":[{"match":"F_(\\d+),(\\d+)","kind":"F","microbatch":"$?"}, )x"
      R"x({"match":"B_(\\d+),(\\d+)","kind":"B","microbatch":"$?"}]})x"))
      << names.describe();
}

TEST(SeenNames, SuggestNoRuleForStepMarkers) {
  traces::SeenNames names;
  names.add("ProfilerStep#2");
  EXPECT_TRUE(names.describe().ends_with(
      "; none of its names is that of an op, so `rules` cannot read them"))
      << names.describe();
  names.add("work 3");
  EXPECT_NE(names.describe().find(R"("match":"work)"), std::string::npos) << names.describe();
}

// Functions of VizTracer, of PyTorch with stacks and of cProfile have files, versions and lines.
TEST(SeenNames, SuggestNoRuleForFunctions) {
  traces::SeenNames names;
  for (const char* const name :
       {"forward (/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py:123)",
        "backward (C:\\lib\\engine.py:7)", "_find_spec (<frozen importlib._bootstrap>:1022)",
        "torch/nn/modules/module.py(1553): _call_impl", "train.py:45(forward_step)",
        "step (./optim3.py:12)", "len", "Tensor.backward"})
    names.add(name);
  EXPECT_TRUE(names.describe().ends_with(
      "; none of its names is that of an op, so `rules` cannot read them"))
      << names.describe();
  EXPECT_EQ(names.suggest_op_rules(), "");
  EXPECT_EQ(names.suggest_step_rule(), "");
  // An op among them is suggested, however often functions ran.
  names.add("fwd mb 3");
  EXPECT_EQ(names.suggest_op_rules(),
            R"x({"match":"fwd mb (\\d+)","kind":"F","microbatch":"$1"})x");
}

TEST(SeenNames, SuggestNoRuleForUpdatesAndCollectives) {
  traces::SeenNames names;
  for (const char* const name :
       {"Optimizer.step#FusedAdam.step", "weight_update 3", "all2all kjt 2", "fwd_all_gather 1"})
    names.add(name);
  EXPECT_EQ(names.suggest_op_rules(), "");
  EXPECT_TRUE(
      names.describe().ends_with("none of its names is that of an op, so `rules` cannot read them"))
      << names.describe();
}

// Numbers of versions and dtypes count nothing; those of indices with dots do.
TEST(SeenNames, SuggestNoNumberOfAVersion) {
  const struct {
    const char* name;
    const char* rule;
  } cases[] = {
      {"fwd bf16 mb 3", R"x("match":"fwd bf16 mb (\\d+)","kind":"F","microbatch":"$1"})x"},
      {"forward fp8 3", R"x("match":"forward fp8 (\\d+)","kind":"F","microbatch":"$1"})x"},
      {"v2.1 bwd 4", R"x("match":"v2\\.1 bwd (\\d+)","kind":"B","microbatch":"$1"})x"},
      {"forward torch 2.1.0", R"x("match":"forward torch 2\\.1\\.0","kind":"F"})x"},
      {"my fwd3.1", R"x("match":"my fwd(\\d+)\\.(\\d+)","kind":"F","microbatch":"$1"})x"},
      {"F3.1.0.2",
       R"x("match":"F(\\d+)\\.(\\d+)\\.(\\d+)\\.(\\d+)","kind":"F","microbatch":"$?"})x"},
      {"all2all bwd 5", R"x("match":"all2all bwd (\\d+)","kind":"B","microbatch":"$1"})x"},
      {"pipeline/forward/mb_3",
       R"x("match":"pipeline/forward/mb_(\\d+)","kind":"F","microbatch":"$1"})x"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(traces::suggest_rule(one.name), std::string("{") + one.rule);
}

TEST(SeenNames, SuggestRulesThatParseAndMatch) {
  for (const char* name :
       {"fwd_3", "a.b(c) [4]* backward 2", "iter 7 bwd_wgrad microbatch=3", "W.3"}) {
    const traces::NameRules rules = parse(traces::suggest_rule(name));
    const auto meaning = rules.find(name);
    ASSERT_TRUE(meaning && meaning->op) << name << ": " << traces::suggest_rule(name);
  }
}

// The user has to say the kind, and is told which there are.
TEST(SeenNames, SuggestNoKindThatTheNameDoesNotSay) {
  EXPECT_NE(refusal(traces::suggest_rule("retour 3")).find("must be F, B, I, W, R"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
