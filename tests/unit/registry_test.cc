// Registries: what makes their entries, and when.
#include "sim/ir/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/nearest_names.h"

namespace bubblescope::tests {
namespace {

struct RegisteredFruit {
  std::string name;
  std::vector<std::string> aliases = {};
};

int made_count = 0;

RegisteredFruit make_fruit(const char* name, std::vector<std::string> aliases = {}) {
  ++made_count;
  return {name, std::move(aliases)};
}

const Registrar<RegisteredFruit> pear{[] { return make_fruit("pear", {"williams"}); }};
const Registrar<RegisteredFruit> several{[] {
  return std::vector{make_fruit("quince"), make_fruit("apple")};
}};

// A program that asks for no fruit makes none; all are made once, and are in the order of names.
TEST(Registry, MakesItsEntriesWhenTheyAreFirstAskedFor) {
  EXPECT_EQ(made_count, 0);
  const auto& registry = Registry<RegisteredFruit>::instance();
  EXPECT_EQ(made_count, 3);
  ASSERT_EQ(registry.all().size(), 3u);
  EXPECT_EQ(registry.all()[0].name, "apple");
  EXPECT_EQ(registry.all()[2].name, "quince");
  EXPECT_EQ(registry.find("Williams"), &registry.all()[1]);
  EXPECT_EQ(nearest_names("aple", registry), std::vector<std::string>{"apple"});
  Registry<RegisteredFruit>::instance();
  EXPECT_EQ(made_count, 3);
}

}  // namespace
}  // namespace bubblescope::tests
