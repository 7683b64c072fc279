// Tests what a step run counts and keeps: dependencies that are left, and the first failure.
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "exec/runtime/first_failure.h"
#include "exec/runtime/pending_dependencies.h"
#include "sim/ir/lower.h"
#include "tests/support/built_schedule.h"

namespace bubblescope::tests {
namespace {

using exec::FirstFailure;
using exec::PendingDependencies;

void note(FirstFailure& failure, std::int32_t rank, const char* what) {
  try {
    throw std::runtime_error(what);
  } catch (const std::exception&) {
    failure.note(rank);
  }
}

std::string text_of(const std::exception_ptr& exception) {
  if (exception == nullptr) return "";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(FirstFailures, AreKeptForTheirRankUntilTheyAreForgotten) {
  FirstFailure failure;
  EXPECT_EQ(text_of(failure.of(0)), "");
  note(failure, 2, "first");
  note(failure, 1, "second");
  EXPECT_EQ(text_of(failure.of(2)), "first");
  EXPECT_EQ(text_of(failure.of(1)), "");
  failure.forget();
  EXPECT_EQ(text_of(failure.of(2)), "");
  note(failure, 1, "third");
  EXPECT_EQ(text_of(failure.of(1)), "third");
}

TEST(PendingDependencyCounts, ReachNoneOnceAllHaveEnded) {
  const Program program = std::get<Program>(lower(build("1f1b", 2, 4)));
  PendingDependencies pending(program, [](InstructionId, InstructionId) { return false; });
  for (int step = 0; step < 2; ++step) {
    pending.reset();
    std::vector<int> ends(program.size(), 0);
    for (InstructionId id = 0; id < program.size(); ++id)
      for (const InstructionId dependent : pending.dependents_of(id)) {
        EXPECT_FALSE(pending.have_ended(dependent));
        ++ends[dependent];
        const bool is_last =
            ends[dependent] == static_cast<int>(program.dependencies_of(dependent).size());
        EXPECT_EQ(pending.end_one(dependent), is_last);
      }
    for (InstructionId id = 0; id < program.size(); ++id) {
      EXPECT_TRUE(pending.have_ended(id));
      EXPECT_EQ(pending.has_none(id), program.dependencies_of(id).empty());
    }
  }
}

TEST(PendingDependencyCounts, LeaveOutThoseThatALaneKeeps) {
  const Program program = std::get<Program>(lower(build("1f1b", 2, 4)));
  PendingDependencies pending(program, [](InstructionId, InstructionId) { return true; });
  pending.reset();
  for (InstructionId id = 0; id < program.size(); ++id) {
    EXPECT_TRUE(pending.has_none(id) && pending.have_ended(id));
    EXPECT_TRUE(pending.dependents_of(id).empty());
  }
}

}  // namespace
}  // namespace bubblescope::tests
