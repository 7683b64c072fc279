// Exceptions of the standard library become errors of the machine.
#include "tools/errors.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

namespace bubblescope::tests {

using tools::to_error;

TEST(Errors, MemoryThatIsMissingIsNamedInPlainWords) {
  const std::string expected = "out of memory; ask for fewer stages or micro-batches";
  EXPECT_EQ(to_error(std::bad_alloc()).what(), expected);
  EXPECT_EQ(to_error(std::length_error("vector::_M_range_insert")).what(), expected);
}

TEST(Errors, OtherExceptionsAreOfTheMachine) {
  const Error error = to_error(std::runtime_error("no thread can be started"));
  EXPECT_EQ(error.what(), std::string("no thread can be started"));
  EXPECT_EQ(tools::exit_status(error.fault()), 3);
}

}  // namespace bubblescope::tests
