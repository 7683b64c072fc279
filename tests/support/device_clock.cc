// Advances from the end of one kernel to the next.
#include "tests/support/device_clock.h"

#include <algorithm>
#include <limits>

namespace bubblescope::tests {

namespace {

constexpr double kDone = 1e-6;  // in nanoseconds: tolerance for rounding

}  // namespace

std::size_t DeviceClock::add_stream(std::int32_t device) {
  streams_.push_back({device, false, {}});
  return streams_.size() - 1;
}

void DeviceClock::remove_stream(std::size_t stream) {
  streams_[stream].removed = true;
  streams_[stream].commands.clear();
  while (!streams_.empty() && streams_.back().removed) streams_.pop_back();
}

void DeviceClock::run(std::size_t stream, double nanos, const SlowdownLaw* law) {
  streams_[stream].commands.push_back({Command::Kind::kRun, nanos, law, false, nullptr, 0});
}

void DeviceClock::run_beside(std::size_t stream, double nanos, const SlowdownLaw& law) {
  streams_[stream].commands.push_back({Command::Kind::kRun, nanos, &law, true, nullptr, 0});
}

void DeviceClock::block(std::size_t stream, const volatile std::uint32_t* word) {
  streams_[stream].commands.push_back({Command::Kind::kBlock, 0, nullptr, false, word, 0});
}

std::int64_t DeviceClock::record(std::size_t stream) {
  marks_.emplace_back();
  const auto mark = static_cast<std::int64_t>(marks_.size()) - 1;
  streams_[stream].commands.push_back({Command::Kind::kRecord, 0, nullptr, false, nullptr, mark});
  return mark;
}

void DeviceClock::wait(std::size_t stream, std::int64_t mark) {
  streams_[stream].commands.push_back({Command::Kind::kWait, 0, nullptr, false, nullptr, mark});
}

std::optional<double> DeviceClock::time_of(std::int64_t mark) {
  advance();
  return marks_[static_cast<std::size_t>(mark)];
}

void DeviceClock::advance() {
  for (;;) {
    while (settle()) continue;
    double step = std::numeric_limits<double>::infinity();
    for (const Stream& stream : streams_)
      if (const double pace = rate_of(stream); pace > 0)
        step = std::min(step, stream.commands.front().left / pace);
    if (step == std::numeric_limits<double>::infinity()) return;
    std::vector<double> done;
    for (const Stream& stream : streams_) done.push_back(step * rate_of(stream));
    now_ += step;
    for (std::size_t at = 0; at < streams_.size(); ++at)
      if (done[at] > 0) streams_[at].commands.front().left -= done[at];
  }
}

/// Removes what has ended by now. Returns whether anything had.
bool DeviceClock::settle() {
  bool any = false;
  for (Stream& stream : streams_)
    while (!stream.commands.empty() && has_ended(stream.commands.front())) {
      stream.commands.pop_front();
      any = true;
    }
  return any;
}

bool DeviceClock::has_ended(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kRun: return command.left <= kDone;
    case Command::Kind::kBlock: return *command.word != 0;
    case Command::Kind::kWait: return marks_[static_cast<std::size_t>(command.mark)].has_value();
    case Command::Kind::kRecord: marks_[static_cast<std::size_t>(command.mark)] = now_; return true;
  }
  return true;
}

std::int64_t DeviceClock::count_busy(std::int32_t device) const {
  return std::count_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.device == device && !stream.commands.empty() &&
           stream.commands.front().kind == Command::Kind::kRun &&
           stream.commands.front().law != nullptr && !stream.commands.front().is_beside;
  });
}

/// The progress of the stream's kernel per nanosecond; 0 if it has no kernel.
double DeviceClock::rate_of(const Stream& stream) const {
  if (stream.commands.empty() || stream.commands.front().kind != Command::Kind::kRun) return 0;
  const Command& command = stream.commands.front();
  if (command.law == nullptr || command.law->empty()) return 1;
  const std::int64_t others = count_busy(stream.device) - (command.is_beside ? 0 : 1);
  if (others < 1) return 1;
  return 1 / (*command.law)[std::min(static_cast<std::size_t>(others), command.law->size()) - 1];
}

}  // namespace bubblescope::tests
