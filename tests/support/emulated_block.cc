// Fibers.
#include "tests/support/emulated_block.h"

#include <ucontext.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace bubblescope {

namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr unsigned int kWarpSize = 32;

enum class Wait : std::uint8_t { kNone, kBlock, kWarp, kDone };

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  Wait wait = Wait::kNone;
  float given = 0;
};

struct Block {
  EmulatedIndex thread, block, block_size, grid_size;
  std::vector<Fiber> fibers;
  ucontext_t host{};
  const std::function<void()>* kernel = nullptr;
};

Block& running() {
  static Block block;
  return block;
}

void live() {
  (*running().kernel)();
  running().fibers[running().thread.x].wait = Wait::kDone;
}

void pause(Wait wait) {
  Fiber& fiber = running().fibers[running().thread.x];
  fiber.wait = wait;
  swapcontext(&fiber.context, &running().host);
}

void start(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &running().host;
  makecontext(&fiber.context, live, 0);
  fiber.wait = Wait::kNone;
}

/// Lets go those of first..last-1 who all wait for each other.
bool release(unsigned int first, unsigned int last, Wait wait) {
  for (unsigned int thread = first; thread < last; ++thread)
    if (running().fibers[thread].wait != wait) return false;
  for (unsigned int thread = first; thread < last; ++thread)
    running().fibers[thread].wait = Wait::kNone;
  return true;
}

bool release_waiting() {
  const auto threads = static_cast<unsigned int>(running().fibers.size());
  bool any = release(0, threads, Wait::kBlock);
  for (unsigned int first = 0; first < threads; first += kWarpSize)
    any = release(first, first + kWarpSize, Wait::kWarp) || any;
  return any;
}

bool run_all(FiberOrder order) {
  Block& block = running();
  const auto threads = static_cast<unsigned int>(block.fibers.size());
  bool all_done = true;
  for (unsigned int at = 0; at < threads; ++at) {
    block.thread.x = order == FiberOrder::kUp ? at : threads - 1 - at;
    Fiber& fiber = block.fibers[block.thread.x];
    if (fiber.wait == Wait::kNone) swapcontext(&block.host, &fiber.context);
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

/// Everyone gives before anyone takes, and everyone has taken before anyone gives again.
float emulated_shuffle(float value, int bits) {
  Block& block = running();
  const unsigned int self = block.thread.x;
  block.fibers[self].given = value;
  pause(Wait::kWarp);
  const float taken = block.fibers[self ^ static_cast<unsigned int>(bits)].given;
  pause(Wait::kWarp);
  return taken;
}

void emulate(unsigned int blocks, unsigned int threads, FiberOrder order,
             const std::function<void()>& kernel) {
  if (threads % kWarpSize != 0) throw std::logic_error("a block has whole warps");
  Block& block = running();
  block.kernel = &kernel;
  block.block_size.x = threads;
  block.grid_size.x = blocks;
  block.fibers = std::vector<Fiber>(threads);
  for (block.block.x = 0; block.block.x < blocks; ++block.block.x) {
    for (Fiber& fiber : block.fibers) start(fiber);
    while (!run_all(order))
      if (!release_waiting()) throw std::logic_error("threads of a block wait at different places");
  }
  block.fibers.clear();
}

}  // namespace bubblescope
