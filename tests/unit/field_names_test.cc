// Fields that errors of the library name become flags at the command line.
#include "tools/flags/field_names.h"

#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"

namespace bubblescope::tests {
namespace {

TEST(FieldNames, BecomeFlags) {
  EXPECT_EQ(
      tools::name_flags("`pp` must be even; change `microbatches`, or `microbatch_group_size`"),
      "--pp must be even; change -m, or --microbatch-group-size");
  EXPECT_EQ(tools::name_flags("plain"), "plain");
}

TEST(FieldNames, OtherWordsInBackquotesStay) {
  EXPECT_EQ(tools::name_flags("file `a` of `pp"), "file `a` of `pp");
  EXPECT_EQ(tools::name_flags("`a``pp``"), "`a`--pp`");
  EXPECT_EQ(tools::name_flags("it's `b`pp` here"), "it's `b--pp here");
}

TEST(FieldNames, AreNamedInProblems) {
  const Problems problems = tools::name_flags(Problems{{{}, {}, "`vpp` is 2", "leave `vpp` out"}});
  EXPECT_EQ(to_string(problems[0]), "--vpp is 2; leave --vpp out");
}

TEST(FieldNames, OfARefusedShapeAreThoseOfTheLibrary) {
  ScheduleRequest request;
  request.shape.ranks = 3;
  request.shape.microbatches = 8;
  const std::vector<std::string> reasons = refuse_schedule(find_schedule("dualpipe"), request);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0], "both directions meet in the middle: `pp` must be even");
  EXPECT_EQ(tools::name_flags(reasons[0]), "both directions meet in the middle: --pp must be even");
}

}  // namespace
}  // namespace bubblescope::tests
