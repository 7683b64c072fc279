// The pictures of the documentation equal what the program draws. After a wanted change:
//   cd docs/pictures
//   bubblescope simulate 1f1b     --pp 4 -m 8 --svg 1f1b.svg
//   bubblescope simulate zb-v     --pp 4 -m 8 --svg zb-v.svg
//   bubblescope simulate dualpipe --pp 4 -m 8 --svg dualpipe.svg
//   bubblescope simulate 1f1b     --pp 3 -m 4 --p2p 0.3 --dot 1f1b-graph.svg   (and look at it)
#include <gtest/gtest.h>

#include <string>

#include "tests/support/recorded_step.h"
#include "tests/support/test_paths.h"

namespace bubblescope::tests {
namespace {

std::string documented(const std::string& name) {
  return traces::read_file(source_folder() + "/docs/pictures/" + name + ".svg");
}

TEST(Pictures, AreWhatIsDrawn) {
  EXPECT_EQ(documented("1f1b"),
            write_as("svg", record_step("1f1b", {.ranks = 4, .microbatches = 8})));
  EXPECT_EQ(documented("zb-v"),
            write_as("svg", record_step("zb-v", {.ranks = 4, .chunks = 2, .microbatches = 8})));
  EXPECT_EQ(documented("dualpipe"),
            write_as("svg", record_step("dualpipe", {.ranks = 4, .microbatches = 8})));
}

}  // namespace
}  // namespace bubblescope::tests
