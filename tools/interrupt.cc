// Keeps one check per thread, and one note of a signal.
#include "tools/interrupt.h"

#include <cstdlib>
#include <utility>

namespace bubblescope::tools {

namespace {

thread_local std::function<void()> current_check;

/// It is global because a signal handler can reach nothing else.
volatile std::sig_atomic_t interrupted = 0;

void note(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check)
    : outer_(std::exchange(current_check, std::move(check))) {}

InterruptCheck::~InterruptCheck() { current_check = std::move(outer_); }

bool has_interrupt_check() { return current_check != nullptr; }

void check_interrupt() {
  if (current_check) current_check();
}

InterruptCatcher::InterruptCatcher() {
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;  // as in the background jobs of scripts
  struct sigaction action {};
  action.sa_handler = note;
  sigaction(SIGINT, &action, nullptr);
}

InterruptCatcher::~InterruptCatcher() {
  sigaction(SIGINT, &before_, nullptr);
  interrupted = 0;
}

bool is_interrupted() { return interrupted != 0; }

void end_by_interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  std::abort();
}

}  // namespace bubblescope::tools
