// Fibers. Each starts on a context of its own; after that they switch by longjmp, which needs no
// system call. A fortified longjmp would take the jump to another stack for an error, so
// fortification is off.
#undef _FORTIFY_SOURCE
#include "tests/support/emulated_block.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>

namespace bubblescope::tests {

namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr unsigned int kWarpSize = 32;

enum class Wait : std::uint8_t { kNone, kBlock, kWarp, kNobody, kDone };

/// The fiber of one thread; it is reused for block after block.
struct Fiber {
  ucontext_t begin{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  jmp_buf place{};
  bool has_begun = false;
  Wait wait = Wait::kNone;
  float given[2] = {};
  int turn = 0;  ///< the next value that is exchanged
  const void* shown = nullptr;
};

struct Block {
  EmulatedIndex thread, block, block_size, grid_size;
  std::deque<Fiber> fibers;  ///< as many as the largest block so far
  unsigned int threads = 0;
  jmp_buf host{};
  const std::function<void()>* kernel = nullptr;
};

Block& running() {
  static Block block;
  return block;
}

void pause(Wait wait) {
  Fiber& fiber = running().fibers[running().thread.x];
  fiber.wait = wait;
  if (_setjmp(fiber.place) == 0) _longjmp(running().host, 1);
}

void live() {
  for (;;) {
    (*running().kernel)();
    pause(Wait::kDone);
  }
}

void begin(Fiber& fiber) {
  getcontext(&fiber.begin);
  fiber.begin.uc_stack.ss_sp = fiber.stack.get();
  fiber.begin.uc_stack.ss_size = kStackBytes;
  makecontext(&fiber.begin, live, 0);
  fiber.has_begun = true;
  setcontext(&fiber.begin);
}

/// Runs the fiber until it pauses.
void resume(Fiber& fiber) {
  if (_setjmp(running().host) != 0) return;
  if (fiber.has_begun) _longjmp(fiber.place, 1);
  begin(fiber);
}

/// Releases threads first to last - 1 if all of them wait at the same point.
bool release(unsigned int first, unsigned int last, Wait wait) {
  for (unsigned int thread = first; thread < last; ++thread)
    if (running().fibers[thread].wait != wait) return false;
  for (unsigned int thread = first; thread < last; ++thread)
    running().fibers[thread].wait = Wait::kNone;
  return true;
}

bool release_waiting() {
  const auto threads = running().threads;
  bool any = release(0, threads, Wait::kBlock);
  for (unsigned int first = 0; first < threads; first += kWarpSize)
    any = release(first, std::min(first + kWarpSize, threads), Wait::kWarp) || any;
  return any;
}

bool run_all(FiberOrder order) {
  Block& block = running();
  const auto threads = block.threads;
  bool all_done = true;
  for (unsigned int at = 0; at < threads; ++at) {
    block.thread.x = order == FiberOrder::kUp ? at : threads - 1 - at;
    Fiber& fiber = block.fibers[block.thread.x];
    if (fiber.wait == Wait::kNone) resume(fiber);
    all_done = all_done && fiber.wait == Wait::kDone;
  }
  return all_done;
}

}  // namespace

EmulatedIndex& emulated_thread() { return running().thread; }
EmulatedIndex& emulated_block() { return running().block; }
EmulatedIndex& emulated_block_size() { return running().block_size; }
EmulatedIndex& emulated_grid_size() { return running().grid_size; }

void emulated_barrier() { pause(Wait::kBlock); }

/// Every thread writes its value before any reads. Values alternate between two places: a thread
/// writes the next value only after all have read this one.
float emulated_shuffle(float value, int bits) {
  Block& block = running();
  const unsigned int self = block.thread.x;
  const int turn = block.fibers[self].turn;
  block.fibers[self].turn = 1 - turn;
  block.fibers[self].given[turn] = value;
  pause(Wait::kWarp);
  const unsigned int other = self ^ static_cast<unsigned int>(bits);
  if (other >= block.threads) pause(Wait::kNobody);
  return block.fibers[other].given[turn];
}

void emulated_show(const void* shown) {
  running().fibers[running().thread.x].shown = shown;
  pause(Wait::kWarp);
}

const void* emulated_shown_by(unsigned int lane) {
  return running().fibers[running().thread.x / kWarpSize * kWarpSize + lane].shown;
}

void emulated_end_show() { pause(Wait::kWarp); }

void emulate(unsigned int blocks, unsigned int threads, FiberOrder order,
             const std::function<void()>& kernel) {
  Block& block = running();
  block.kernel = &kernel;
  block.threads = block.block_size.x = threads;
  block.grid_size.x = blocks;
  if (block.fibers.size() < threads) block.fibers.resize(threads);
  for (block.block.x = 0; block.block.x < blocks; ++block.block.x) {
    for (unsigned int thread = 0; thread < threads; ++thread) {
      block.fibers[thread].wait = Wait::kNone;
      block.fibers[thread].turn = 0;
    }
    while (!run_all(order))
      if (!release_waiting()) {
        block.fibers.clear();  // they are suspended within a kernel
        throw std::logic_error("threads of a block wait at different places");
      }
  }
}

}  // namespace bubblescope::tests
