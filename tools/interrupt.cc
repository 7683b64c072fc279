// Keeps one check per thread, and one note of a signal.
#include "tools/interrupt.h"

#include <csignal>
#include <cstdlib>
#include <utility>

namespace bubblescope::tools {

namespace {

thread_local std::function<void()> current_check;

/// It is global because a signal handler can reach nothing else.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // else no signal handler may set it

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check)
    : outer_(std::exchange(current_check, std::move(check))) {}

InterruptCheck::~InterruptCheck() { current_check = std::move(outer_); }

bool has_interrupt_check() { return current_check != nullptr; }

void check_interrupt() {
  if (current_check) current_check();
}

InterruptCatcher::InterruptCatcher(std::vector<int> signals, IgnoredSignals ignored) {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the program
  for (const int signal : signals) {
    struct sigaction& before = before_[signal];
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN || ignored == IgnoredSignals::kAreCaught)
      sigaction(signal, &action, nullptr);
  }
}

InterruptCatcher::~InterruptCatcher() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  interrupted = false;
}

bool is_interrupted() { return interrupted; }

const std::atomic<bool>& interrupt_note() { return interrupted; }

void end_by_interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  std::abort();
}

}  // namespace bubblescope::tools
