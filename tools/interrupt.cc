// Keeps one check per thread.
#include "tools/interrupt.h"

#include <utility>

namespace bubblescope::tools {

namespace {

thread_local std::function<void()> current_check;

}  // namespace

InterruptCheck::InterruptCheck(std::function<void()> check)
    : outer_(std::exchange(current_check, std::move(check))) {}

InterruptCheck::~InterruptCheck() { current_check = std::move(outer_); }

void check_interrupt() {
  if (current_check) current_check();
}

}  // namespace bubblescope::tools
