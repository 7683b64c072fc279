// Tests that the heap keeps memory between the steps of a training.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>
#include <vector>

#include "exec/runtime/keep_memory.h"
#include "exec/training/matrix.h"

// Sanitizers replace the heap.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUBBLESCOPE_OTHER_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BUBBLESCOPE_OTHER_HEAP
#endif
#endif

namespace bubblescope::tests {
namespace {

#if defined(__GLIBC__) && !defined(BUBBLESCOPE_OTHER_HEAP)
/// Page faults of this thread.
long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

/// Forwards that keep 10 MiB, then all backwards: 2560 pages of 4 KiB.
long run_step() {
  const long before = page_faults();
  std::vector<exec::Matrix> kept;
  for (int microbatch = 0; microbatch < 40; ++microbatch) kept.emplace_back(256, 256);
  return page_faults() - before;
}
#endif

TEST(KeepMemory, TheSecondStepFindsThePagesOfTheFirst) {
#if !defined(__GLIBC__) || defined(BUBBLESCOPE_OTHER_HEAP)
  GTEST_SKIP() << "this heap is not glibc's";
#else
  exec::keep_freed_memory();
  long second = 0;
  std::thread lane([&] {
    run_step();
    second = run_step();
  });
  lane.join();
  EXPECT_LT(second, 100);
#endif
}

}  // namespace
}  // namespace bubblescope::tests
